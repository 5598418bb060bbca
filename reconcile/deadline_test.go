package reconcile_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/plan"
)

// TestDeadline checks that a pod that exceeds its deadline has failed permanently, even if podd did
// not run for most of the time.
func TestDeadline(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		began := time.Now()
		m.setPods(pod(t, "web", `activeDeadlineSeconds: 60
terminationGracePeriodSeconds: 9
containers: [{name: app, image: "web:1", lifecycle: {preStop: {sleep: {seconds: 4}}}}]`))
		m.settle()
		m.kill()
		m.advance(20 * time.Second)
		m.start()
		m.advance(15 * time.Second)
		if s := m.report("web").Pod.Status; s.Phase != v1.PodRunning {
			t.Errorf("before the deadline: got phase %s and reason %q, want Running", s.Phase, s.Reason)
		}
		m.ForgetCalls()
		m.settle()
		wantHookCalls(t, m.hookCalls(began), "64s StopContainer web/app within 5s", "64s StopPodSandbox web")
		failed := func() {
			t.Helper()
			s := m.report("web").Pod.Status
			if s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" || s.Message != "Pod was active on the node longer than the specified deadline" || m.rule("web") != plan.RuleFinished {
				t.Errorf("after the deadline: got phase %s, reason %q and message %q, want Failed, DeadlineExceeded and the kubelet's message\n%s", s.Phase, s.Reason, s.Message, m.state())
			}
		}
		failed()
		m.restart()
		failed()
	})
}

// TestFinished_Cgroup checks that a finished pod has no cgroup, although its containers and logs are kept.
func TestFinished_Cgroup(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		job := pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"]}]`)
		m.start()
		m.setPods(job, pod(t, "web", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		m.wantState("job 0 dead", "job/app 0 exited 0", "web 0 ready", "web/app 0 running")
		if got, want := m.leftovers.withoutCgroup, []types.UID{job.UID}; !slices.Equal(got, want) {
			t.Errorf("pods whose cgroup was removed: got %v, want %v", got, want)
		}
	})
}

// TestDeadline_NotAdmitted checks that the time for which a pod waits for its admission does not
// count for its deadline.
func TestDeadline_NotAdmitted(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.MaxPods = 1 }
		web := pod(t, "web", `containers: [{name: app, image: "web:1"}]`)
		job := pod(t, "job", `restartPolicy: Never
activeDeadlineSeconds: 60
containers: [{name: app, image: "web:1"}]`)
		m.start()
		m.setPods(web)
		m.settle()
		m.setPods(web, job)
		m.advance(2 * time.Minute)
		if r := m.report("job"); r.Decision.Reason != "OutOfpods" {
			t.Fatalf("decision about job: got %s, want reason OutOfpods", r.Decision)
		}
		m.setPods(job)
		m.advance(40 * time.Second)
		m.wantState("job 0 ready", "job/app 0 running")
		m.advance(time.Minute)
		if r := m.report("job"); r.Finished == nil || r.Finished.Reason != plan.ReasonDeadlineExceeded {
			t.Errorf("PodEnd of job: got %+v, want reason %s\n%s", r.Finished, plan.ReasonDeadlineExceeded, r.Decision)
		}
	})
}
