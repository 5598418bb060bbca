package reconcile_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile"
	"podd/reconcile/plan"
)

// TestDeadline: a pod that takes too long has failed, though podd was away for most
// of the time, and it stays so.
func TestDeadline(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		began := time.Now()
		m.want(pod(t, "web", `activeDeadlineSeconds: 60
terminationGracePeriodSeconds: 9
containers: [{name: app, image: "web:1", lifecycle: {preStop: {sleep: {seconds: 4}}}}]`))
		m.settle()
		m.kill()
		m.pass(20 * time.Second)
		m.start()
		m.pass(15 * time.Second)
		if s := m.report("web").Pod.Status; s.Phase != v1.PodRunning {
			t.Errorf("in time it is %s, %s", s.Phase, s.Reason)
		}
		m.Forget()
		m.settle()
		isDeeds(t, m.deeds(began), "64s PodSandbox web", "64s stop web/app within 5")
		failed := func() {
			t.Helper()
			s := m.report("web").Pod.Status
			if s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" || s.Message != "Pod was active on the node longer than the specified deadline" || m.rule("web") != "finished" {
				t.Errorf("it is %s, %s: %s\n%s", s.Phase, s.Reason, s.Message, m.story())
			}
		}
		failed()
		m.restart()
		failed()
	})
}

// TestDeadlineWaits: what waits for a place on the node uses no time up.
func TestDeadlineWaits(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.MaxPods = 1 }
		web := pod(t, "web", `containers: [{name: app, image: "web:1"}]`)
		job := pod(t, "job", `restartPolicy: Never
activeDeadlineSeconds: 60
containers: [{name: app, image: "web:1"}]`)
		m.start()
		m.want(web)
		m.settle()
		m.want(web, job)
		m.pass(2 * time.Minute)
		if r := m.report("job"); r.Decision.Reason != "OutOfpods" {
			t.Fatalf("job: %s", r.Decision)
		}
		m.want(job)
		m.pass(40 * time.Second)
		m.is("job 0 ready", "job/app 0 running")
		m.pass(time.Minute)
		if r := m.report("job"); r.Finished == nil || r.Finished.Reason != plan.DeadlineExceeded {
			t.Errorf("job: %s", r.Decision)
		}
	})
}
