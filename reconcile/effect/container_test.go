package effect

import (
	"testing"

	"podd/reconcile/plan"
	"podd/runtime"
)

// TestOldestKeptLog checks that the logs of all containers that the runtime lists are kept only if
// the policy keeps more than the newest exited container.
func TestOldestKeptLog(t *testing.T) {
	sandbox := func(id string, containers ...runtime.Container) runtime.Incarnation {
		return runtime.Incarnation{Sandbox: runtime.Sandbox{ID: id}, Containers: containers}
	}
	observed := []runtime.Incarnation{
		sandbox("s2", runtime.Container{Name: "app", Attempt: 3}, runtime.Container{Name: "other", Attempt: 0}, runtime.Container{Name: "app", Attempt: 4}),
		sandbox("s1", runtime.Container{Name: "app", Attempt: 1}),
	}
	tests := map[string]struct {
		keeps  bool
		action plan.StartContainer
		want   uint32
	}{
		"only the last":           {false, plan.StartContainer{Container: "app", SandboxID: "s2", Attempt: 5}, 5},
		"all":                     {true, plan.StartContainer{Container: "app", SandboxID: "s2", Attempt: 5}, 3},
		"first start":             {true, plan.StartContainer{Container: "new", SandboxID: "s2", Attempt: 0}, 0},
		"sandbox not observed":    {true, plan.StartContainer{Container: "app", SandboxID: "s3", Attempt: 5}, 5},
		"logs without containers": {true, plan.StartContainer{Container: "new", SandboxID: "s2", Attempt: 7}, 7},
	}
	for name, test := range tests {
		if got := (&Runner{KeepsEarlierLogs: test.keeps}).oldestKeptLog(observed, test.action); got != test.want {
			t.Errorf("%s: got attempt %d as the oldest with a log, want %d", name, got, test.want)
		}
	}
}
