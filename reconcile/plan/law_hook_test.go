package plan

import (
	"fmt"
	"time"

	"podd/runtime"
)

// recordOf returns the observed container with an ID and its sandbox; nil if there is none.
func recordOf(in Input, id string) (inc *runtime.Incarnation, c *runtime.Container) {
	for i := range in.Observed {
		for j := range in.Observed[i].Containers {
			if c := &in.Observed[i].Containers[j]; c.ID == id {
				return &in.Observed[i], c
			}
		}
	}
	return nil, nil
}

// graceLeft returns the maximum time that remains of the grace period of a container, computed from
// the history.
func graceLeft(in Input, inc *runtime.Incarnation, id string) time.Duration {
	left := max(graceOf(inc), in.History.Terminations[id].Grace)
	if e := in.History.Terminations[id]; !e.Since.IsZero() {
		left = min(left, stopBudget{since: e.Since, grace: e.Grace}.remaining(in.Now))
	}
	if s := in.History.Stopping; s != nil && s.SandboxID == inc.ID {
		left = min(left, stopBudget{since: s.Since, grace: s.Grace}.remaining(in.Now))
	}
	return left
}

// checkPreStopDone returns an error if a container is stopped before its preStop hook is done
// and its grace period is over.
func checkPreStopDone(in Input, a StopContainer) error {
	inc, c := recordOf(in, a.ID)
	if c == nil || c.State != runtime.Running || in.History.Terminations[c.ID].HookDone || a.Grace == 0 {
		return nil
	}
	if begun, ok := in.InFlight[a.Subject()].(StopContainer); ok && begun.Grace == 0 {
		return nil // the container is being killed, because all containers restart
	}
	h := RecordedPreStop(c)
	if h == nil || h.Sleep != nil && h.Sleep.Seconds <= 0 {
		return nil
	}
	left := graceLeft(in, inc, a.ID)
	if fin := in.History.Finished; fin != nil {
		left = min(left, stopBudget{since: fin.At, grace: graceOf(inc)}.remaining(in.Now))
	}
	if left == 0 || h.Sleep != nil && left <= max(graceOf(inc), in.History.Terminations[a.ID].Grace)-GraceDuration(h.Sleep.Seconds) {
		return nil
	}
	return fmt.Errorf("its preStop hook is not done, and %s of its grace period remain", left)
}

// checkPreStop returns an error if a preStop hook must not run.
func checkPreStop(in Input, a RunPreStop) error {
	inc, c := recordOf(in, a.ID)
	switch {
	case c == nil || c.State != runtime.Running || inc.Foreign:
		return fmt.Errorf("the container does not run, or is foreign")
	case RecordedPreStop(c) == nil || RecordedPreStop(c).Sleep != nil:
		return fmt.Errorf("the container has no preStop hook that podd runs")
	case in.History.Terminations[a.ID].HookDone:
		return fmt.Errorf("the preStop hook has already run")
	case in.ForceStop && in.Desired == nil:
		return fmt.Errorf("the stop is forced")
	case a.Grace <= 0 || a.Grace > graceLeft(in, inc, a.ID) && in.History.ProbeStates[a.ID] == (ContainerProbes{}):
		return fmt.Errorf("the grace period of the hook is %s, but only %s of the grace period of the container remain", a.Grace, graceLeft(in, inc, a.ID))
	}
	return nil
}

// checkPostStart returns an error if a postStart hook must not run.
func checkPostStart(in Input, a RunPostStart) error {
	f := newFacts(&in)
	for i := range f.containers {
		if m := &f.containers[i]; m.spec.Name == a.Container {
			if !m.hasState(runtime.Running) || m.last.ID != a.ID || !m.postStart().Due || !f.current.Ready || in.isSandboxStopping(f.current.ID) {
				return fmt.Errorf("the container does not run, or its postStart hook is not due")
			}
			return nil
		}
	}
	return fmt.Errorf("the desired version has no container %s", a.Container)
}
