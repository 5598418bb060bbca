package runonce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/reconcile/plan"
)

// TestNotices: each trouble is told once, and none that ends the run.
func TestNotices(t *testing.T) {
	job, again, db := podOf(t, "job", never, "c"), podOf(t, "again", onFailure, "c"), podOf(t, "db", always, "pg")
	pull := func(n int) Pod {
		return heard(job, 1, step("c", plan.Failure{Count: n, Reason: "ErrImagePull", Message: "pulling x: no answer", Until: after(20)}))
	}
	network := heard(job, 1, waitsFor("network not ready", "no CNI", 0))
	tests := []struct {
		name   string
		before Pod
		now    Pod
		want   []string
	}{
		{"nothing", job, heard(job, 1), nil},
		{"a failed pull", heard(job, 1), pull(1), []string{"job/c: pulling x: no answer; next try in 10s"}},
		{"told already", pull(1), pull(1), nil},
		{"another", pull(1), pull(2), []string{"job/c: pulling x: no answer; next try in 10s"}},
		{"the last", pull(2), pull(3), nil},
		{"a wait", job, network, []string{"job: waits: no CNI"}},
		{"the same wait", network, network, nil},
		{"a crash", again, heard(again, 1, exited("c", 7, 1, 0.5)), []string{"again/c: exit 7 after 0.5s, starts again (1 of 5)"}},
		{"success after it", heard(again, 1, exited("c", 7, 1, 0.5)), heard(again, 1, exited("c", 0, 2, 0.5), isFinished), nil},
		{"one that goes on", db, heard(db, 1, exited("pg", 0, 1, 0.5)), []string{"db/pg: exit 0 after 0.5s, starts again (1 of 2)"}},
		{"a failure that stays", job, heard(job, 1, exited("c", 7, 1, 0.5), isFinished), nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.now.notices(&test.before, after(10))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
