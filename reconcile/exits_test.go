package reconcile

import (
	"testing"
	"time"

	"podd/reconcile/plan"
	"podd/runtime"
)

// TestEndedStaysEnded: an observer that could not ask about a container that
// ended says that it runs; it is not stopped once more.
func TestEndedStaysEnded(t *testing.T) {
	p := barePod("a", "b")
	w, _ := bare(p)
	now := time.Now()
	a := runtime.Container{ID: "1", SandboxID: "s", Name: "a", State: runtime.Running}
	b := runtime.Container{ID: "2", SandboxID: "s", Name: "b", State: runtime.Running}
	before := seen(true, a, b)
	w.observe(before, now)
	end := a
	end.State, end.ExitCode = runtime.Exited, 3
	w.landed(fact{action: plan.StopContainer{Container: "a", ID: "1"}, version: p, ended: now.Add(1), container: &end})
	w.observe(before, now.Add(2))
	got := w.in.Observed[0].Containers
	if len(got) != 2 || got[0].State != runtime.Exited || got[0].ExitCode != 3 || got[1].State != runtime.Running {
		t.Errorf("got %+v, want a's end and b as it was", got)
	}
	if before.Incarnations[0].Containers[0].State != runtime.Running {
		t.Error("the observation was written to")
	}

	// What the runtime says of an end counts.
	end.ExitCode = 137
	w.observe(seen(true, end, b), now.Add(3))
	if got := w.in.Observed[0].Containers[0].ExitCode; got != 137 {
		t.Errorf("exit code %d, want the newly observed 137", got)
	}
}
