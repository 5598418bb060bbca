package plan

import (
	"fmt"
	"time"

	"podd/runtime"
)

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

// graceLeft is what a container's end has left by what is remembered, at most.
func graceLeft(in Input, inc *runtime.Incarnation, id string) time.Duration {
	left := max(graceOf(inc), in.History.Endings[id].Grace)
	if e := in.History.Endings[id]; !e.Since.IsZero() {
		left = min(left, termination{since: e.Since, grace: e.Grace}.left(in.Now))
	}
	if s := in.History.Stopping; s != nil && s.SandboxID == inc.ID {
		left = min(left, termination{since: s.Since, grace: s.Grace}.left(in.Now))
	}
	return left
}

// hooked: nothing is told to stop before its preStop hook is over, as long as
// there is grace.
func hooked(in Input, a StopContainer) error {
	inc, c := recordOf(in, a.ID)
	if c == nil || c.State != runtime.Running || in.History.Endings[c.ID].Hooked || a.Grace == 0 {
		return nil
	}
	h := PreStopOf(c)
	if h == nil || h.Sleep != nil && h.Sleep.Seconds <= 0 {
		return nil
	}
	left := graceLeft(in, inc, a.ID)
	if fin := in.History.Finished; fin != nil {
		left = min(left, termination{since: fin.At, grace: graceOf(inc)}.left(in.Now))
	}
	if left == 0 || h.Sleep != nil && left <= max(graceOf(inc), in.History.Endings[a.ID].Grace)-Grace(h.Sleep.Seconds) {
		return nil
	}
	return fmt.Errorf("before its preStop hook is over, with %s left", left)
}

func preStopped(in Input, a PreStop) error {
	inc, c := recordOf(in, a.ID)
	switch {
	case c == nil || c.State != runtime.Running || inc.Foreign:
		return fmt.Errorf("it does not run, or is not ours")
	case PreStopOf(c) == nil || PreStopOf(c).Sleep != nil:
		return fmt.Errorf("it has none to make")
	case in.History.Endings[a.ID].Hooked:
		return fmt.Errorf("it was made")
	case in.Hurry && in.Desired == nil:
		return fmt.Errorf("in a hurry")
	case a.Grace <= 0 || a.Grace > graceLeft(in, inc, a.ID) && in.History.Probed[a.ID] == (Probed{}):
		return fmt.Errorf("of %s that are left", graceLeft(in, inc, a.ID))
	}
	return nil
}

func postStarted(in Input, a PostStart) error {
	f := sortFacts(&in)
	for i := range f.members {
		if m := &f.members[i]; m.spec.Name == a.Container {
			if !m.is(runtime.Running) || m.last.ID != a.ID || !m.postStart().Owed || !f.cur.Ready || in.ending(f.cur.ID) {
				return fmt.Errorf("it does not run, or owes none")
			}
			return nil
		}
	}
	return fmt.Errorf("there is no such container")
}
