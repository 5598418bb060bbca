package reconcile

import (
	"testing"
	"time"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/runtime"
)

// TestWithExits checks that a container that has exited is not stopped again if an
// observer that could not query it reports it as running.
func TestWithExits(t *testing.T) {
	p := barePod("a", "b")
	w, _ := bare(p)
	now := time.Now()
	a := runtime.Container{ID: "1", SandboxID: "s", Name: "a", State: runtime.Running}
	b := runtime.Container{ID: "2", SandboxID: "s", Name: "b", State: runtime.Running}
	before := seen(true, a, b)
	w.applyObservation(before, now)
	end := a
	end.State, end.ExitCode = runtime.Exited, 3
	w.landed(effect.Result{Action: plan.StopContainer{Container: "a", ID: "1"}, Version: p, Ended: now.Add(1), Value: effect.StoppedContainer{Container: &end}})
	w.applyObservation(before, now.Add(2))
	got := w.in.Observed[0].Containers
	if len(got) != 2 || got[0].State != runtime.Exited || got[0].ExitCode != 3 || got[1].State != runtime.Running {
		t.Errorf("got %+v, want a's end and b as it was", got)
	}
	if before.Incarnations[0].Containers[0].State != runtime.Running {
		t.Error("the observation was written to")
	}

	// An exit that the runtime reports is used.
	end.ExitCode = 137
	w.applyObservation(seen(true, end, b), now.Add(3))
	if got := w.in.Observed[0].Containers[0].ExitCode; got != 137 {
		t.Errorf("exit code %d, want the newly observed 137", got)
	}
}
