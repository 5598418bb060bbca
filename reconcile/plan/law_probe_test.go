package plan

import (
	"fmt"
	"slices"
	"time"

	"podd/manifest"
	"podd/runtime"
)

// asked tells what is wrong with an attempt: only a container that runs is asked,
// and of its start before anything else; and one that ends, only whether it is
// ready.
func asked(in Input, d Decision, a Probe) error {
	underWay := in.InFlight[a.Subject()] == Action(a)
	if inc, c := recordOf(in, a.ID); d.Phase == PhaseStop {
		switch p := VersionOf(inc, in.Desired, in.Leaving); {
		case p == nil || ProbeOf(specOf(p, a.Container), a.Kind) == nil:
			return fmt.Errorf("it has none")
		case a.Kind != Readiness || c.State != runtime.Running || in.History.Probed[a.ID].Readiness == (Trial{}):
			return fmt.Errorf("it ends, or was never asked")
		}
		return nil
	}
	if d.Phase != PhaseInit && d.Phase != PhaseRun && !(underWay && !in.Node.Reachable) {
		return fmt.Errorf("in phase %s", d.Phase)
	}
	if underWay {
		return nil
	}
	f := sortFacts(&in)
	for i := range f.members {
		m := &f.members[i]
		if m.spec.Name != a.Container {
			continue
		}
		switch {
		case ProbeOf(m.spec, a.Kind) == nil, m.kind == Init:
			return fmt.Errorf("it has none")
		case !m.is(runtime.Running) || m.last.ID != a.ID || !f.cur.Ready || in.ending(f.cur.ID):
			return fmt.Errorf("it does not run, or is not to")
		case a.Kind != Startup && !f.passed(m, Startup):
			return fmt.Errorf("it has not started")
		case a.Kind == Startup && f.passed(m, Startup):
			return fmt.Errorf("it has started")
		case a.Kind != Readiness && !d.endingOf(in, a.ID).Since.IsZero():
			return fmt.Errorf("it is being stopped")
		}
		return nil
	}
	return fmt.Errorf("there is no such container")
}

// endingOf is the end of a container as a decision leaves it.
func (d Decision) endingOf(in Input, id string) Ending {
	if e, begun := d.Endings[id]; begun {
		return e
	}
	return in.History.Endings[id]
}

func (d Decision) names(a Action) bool {
	return slices.ContainsFunc(d.Actions, func(b Action) bool { return b.Subject() == a.Subject() })
}

// askedOn: what was asked whether it is ready is asked again, as long as it runs
// in a pod that has not finished, also while it is being stopped.
func askedOn(in Input, d Decision) error {
	for i := range in.Observed {
		inc := &in.Observed[i]
		p := VersionOf(inc, in.Desired, in.Leaving)
		for _, c := range inc.Containers {
			asks := Probe{Container: c.Name, ID: c.ID, Kind: Readiness}
			if c.State != runtime.Running || p == nil || in.History.Probed[c.ID].Readiness == (Trial{}) || d.Phase == PhaseWindDown {
				continue
			}
			// A runtime that does not answer is asked nothing until it does.
			if in.Node.Reachable && d.names(StopContainer{ID: c.ID}) && !d.names(asks) && d.ProbeAt.IsZero() {
				return fmt.Errorf("%s is stopped and asked no more", c.Name)
			}
		}
	}
	return nil
}

// longestProbe is the longest that any probe waits for its next attempt.
func longestProbe(in Input) (longest time.Duration) {
	for _, version := range []*manifest.Pod{in.Desired, in.Leaving} {
		if version == nil {
			continue
		}
		for _, c := range containersOf(&version.Spec.Spec) {
			for _, kind := range probeKinds {
				if p := ProbeOf(c, kind); p != nil {
					longest = max(longest, time.Duration(max(p.PeriodSeconds, p.InitialDelaySeconds, 1))*time.Second)
				}
			}
		}
	}
	return longest
}

// ownGrace is that of the probe which ends a container.
func ownGrace(in Input, c *runtime.Container) (grace time.Duration, ok bool) {
	if in.Desired == nil {
		return 0, false
	}
	for _, spec := range containersOf(&in.Desired.Spec.Spec) {
		for _, kind := range []ProbeKind{Startup, Liveness} {
			p := ProbeOf(spec, kind)
			if spec.Name == c.Name && p != nil && in.History.Probed[c.ID].Of(kind).Health == Failed {
				if p.TerminationGracePeriodSeconds == nil {
					return 0, false
				}
				return Grace(*p.TerminationGracePeriodSeconds), true
			}
		}
	}
	return 0, false
}
