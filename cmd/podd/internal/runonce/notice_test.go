package runonce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/reconcile/plan"
)

// TestNotices checks the notices if the state of a pod changes from before to now. Each failure must
// cause one notice, except the failure that ends the run.
func TestNotices(t *testing.T) {
	job, retried, db := newPod(t, "job", never, "c"), newPod(t, "retried", onFailure, "c"), newPod(t, "db", always, "pg")
	pull := func(n int) runPod {
		return withReportAt(job, 1, addStep("c", plan.Failure{Count: n, Reason: "ErrImagePull", Message: "pulling x: no response", RetryAt: after(20)}))
	}
	network := withReportAt(job, 1, setWaiting("network not ready", "no CNI", 0))
	tests := []struct {
		name   string
		before runPod
		now    runPod
		want   []string
	}{
		{"no failure", job, withReportAt(job, 1), nil},
		{"first failed pull", withReportAt(job, 1), pull(1), []string{"job/c: pulling x: no response; next try in 10s"}},
		{"no new failure", pull(1), pull(1), nil},
		{"second failed pull", pull(1), pull(2), []string{"job/c: pulling x: no response; next try in 10s"}},
		{"last failed pull", pull(2), pull(3), nil},
		{"wait", job, network, []string{"job: waits: no CNI"}},
		{"same wait", network, network, nil},
		{"crash", retried, withReportAt(retried, 1, setExit("c", 7, 1, 0.5)), []string{"retried/c: exit 7 after 0.5s, starts again (1 of 5)"}},
		{"success after a crash", withReportAt(retried, 1, setExit("c", 7, 1, 0.5)), withReportAt(retried, 1, setExit("c", 0, 2, 0.5), setFinished), nil},
		{"exit of a long-running pod", db, withReportAt(db, 1, setExit("pg", 0, 1, 0.5)), []string{"db/pg: exit 0 after 0.5s, starts again (1 of 2)"}},
		{"failed pod", job, withReportAt(job, 1, setExit("c", 7, 1, 0.5), setFinished), nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.now.notices(&test.before, after(10))); diff != "" {
			t.Errorf("%s: notices (-want +got):\n%s", test.name, diff)
		}
	}
}
