package reconcile_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

const slowEnd = "terminationGracePeriodSeconds: 7\n" + `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`

// wantKilled fails the test unless the pod that is not desired any more is killed exactly at the
// end of its own grace period.
func (m *machine) wantKilled() {
	m.t.Helper()
	m.ForgetCalls()
	began := time.Now()
	m.setPods()
	m.settle()
	m.wantState()
	if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < 7*time.Second || took > 8*time.Second {
		m.t.Errorf("time until the sandbox stopped: got %s, want the grace period of 7s", took)
	}
}

// TestDelete_Again deletes a pod, creates it again and deletes it again. The grace period of the first
// deletion does not apply to the second deletion.
func TestDelete_Again(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", slowEnd)
		m.start()
		m.setPods(web)
		m.settle()
		m.setPods()
		m.advance(time.Second)
		if err := m.current().router.Delete(context.Background(), key("web"), web.UID, 0); err != nil {
			t.Fatal(err)
		}
		m.setPods(pod(t, "web", slowEnd)) // before any part of the pod is removed
		m.settle()
		m.wantState("web 1 ready", "web/app 1 running")
		m.wantKilled()
	})
}

// TestCancelDelete checks that a revoked deletion does not stop the pod.
func TestCancelDelete(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", slowEnd)
		m.start()
		m.setPods(web)
		m.settle()
		router := m.current().router
		if err := router.Delete(context.Background(), key("web"), web.UID, 0); err != nil {
			t.Fatal(err)
		}
		m.settle()
		if err := router.CancelDelete(context.Background(), key("web"), web.UID); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		m.wantKilled()
	})
}

// TestDelete_InSource checks that a pod is in its source while its source is deleting it, even if podd is restarted
// during the deletion.
func TestDelete_InSource(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", slowEnd)
		web.Deletion = &manifest.Deletion{GracePeriod: time.Hour}
		m.start()
		m.setPods(web)
		m.settle()
		deleting := m.withObjects(&manifest.Set{TerminatingPods: map[types.NamespacedName]*manifest.Pod{key("web"): web}, CompleteSources: map[string]bool{source: true}})
		m.mu.Lock()
		m.set = deleting
		m.mu.Unlock()
		d := m.current()
		send(d.ctx, d.sets, deleting)
		for _, change := range []func(){func() {}, m.restart} {
			change()
			m.advance(time.Second)
			if r := m.report("web"); r.Version != nil || r.Pod == nil || r.Pod.DeletionTimestamp == nil || !r.IsInSource {
				t.Errorf("got version %v, pod %v and IsInSource %t, want no version, the deleted pod and true", r.Version, r.Pod, r.IsInSource)
			}
		}
	})
}
