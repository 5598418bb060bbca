package plan

import (
	"fmt"
	"time"

	"podd/runtime"
)

// probing tells what is wrong with an attempt: only a container that runs is
// asked, in a pod that is to go on, and of its start before anything else.
func probing(in Input, d Decision, a Probe) error {
	underWay := in.InFlight[a.Subject()] == Action(a)
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
		case in.InFlight["stop/"+a.ID] != nil && m.hist.RestartID == a.ID:
			return fmt.Errorf("it is being stopped")
		}
		return nil
	}
	return fmt.Errorf("there is no such container")
}

// longestProbe is the longest that any probe waits for its next attempt.
func longestProbe(in Input) (longest time.Duration) {
	for _, c := range containersOf(&in.Desired.Spec.Spec) {
		for _, kind := range probeKinds {
			if p := ProbeOf(c, kind); p != nil {
				longest = max(longest, time.Duration(max(p.PeriodSeconds, p.InitialDelaySeconds, 1))*time.Second)
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
