package plan

import (
	"fmt"
	"slices"
	"time"

	"podd/manifest"
	"podd/runtime"
)

// checkProbe returns an error if a probe must not run: only running containers are probed, the
// startup probe comes first, and while a container is being stopped only readiness continues.
func checkProbe(in Input, d Decision, a RunProbe) error {
	inFlight := in.InFlight[a.Subject()] == Action(a)
	if inc, c := recordOf(in, a.ID); d.Phase == PhaseStop {
		switch p := FindVersion(inc, in.Desired, in.Previous); {
		case p == nil || FindProbe(specOf(p, a.Container), a.Kind) == nil:
			return fmt.Errorf("container %s has no %s probe", a.Container, a.Kind)
		case a.Kind != ReadinessProbe || c.State != runtime.Running || in.History.ProbeStates[a.ID].Readiness == (ProbeState{}):
			return fmt.Errorf("the container is being stopped, or its readiness was never probed")
		}
		return nil
	}
	if d.Phase != PhaseInit && d.Phase != PhaseRun && !(inFlight && !in.Node.RuntimeReachable) {
		return fmt.Errorf("the pod is in phase %s, in which nothing is probed", d.Phase)
	}
	if inFlight {
		return nil
	}
	f := newFacts(&in)
	for i := range f.containers {
		m := &f.containers[i]
		if m.spec.Name != a.Container {
			continue
		}
		switch {
		case FindProbe(m.spec, a.Kind) == nil, m.kind == KindInit:
			return fmt.Errorf("container %s has no %s probe", a.Container, a.Kind)
		case !m.hasState(runtime.Running) || m.last.ID != a.ID || !f.current.Ready || in.isSandboxStopping(f.current.ID):
			return fmt.Errorf("the container does not run, or is being stopped")
		case a.Kind != StartupProbe && !f.hasPassed(m, StartupProbe):
			return fmt.Errorf("the container has not started")
		case a.Kind == StartupProbe && f.hasPassed(m, StartupProbe):
			return fmt.Errorf("the container has started")
		case a.Kind != ReadinessProbe && !d.terminationOf(in, a.ID).Since.IsZero():
			return fmt.Errorf("the container is being stopped")
		}
		return nil
	}
	return fmt.Errorf("the desired version has no container %s", a.Container)
}

// terminationOf returns the termination of a container after a decision.
func (d Decision) terminationOf(in Input, id string) Termination {
	if e, begun := d.Terminations[id]; begun {
		return e
	}
	return in.History.Terminations[id]
}

// hasSubjectOf reports whether a decision contains an action that has the same subject as action a.
func (d Decision) hasSubjectOf(a Action) bool {
	return slices.ContainsFunc(d.Actions, func(b Action) bool { return b.Subject() == a.Subject() })
}

// checkReadinessContinues returns an error if a decision omits the readiness probe of a running
// container that is being stopped.
func checkReadinessContinues(in Input, d Decision) error {
	for i := range in.Observed {
		inc := &in.Observed[i]
		p := FindVersion(inc, in.Desired, in.Previous)
		for _, c := range inc.Containers {
			probe := RunProbe{Container: c.Name, ID: c.ID, Kind: ReadinessProbe}
			if c.State != runtime.Running || p == nil || in.History.ProbeStates[c.ID].Readiness == (ProbeState{}) || d.Phase == PhaseWindDown {
				continue
			}
			// Nothing is probed while the runtime is unreachable.
			if in.Node.RuntimeReachable && d.hasSubjectOf(StopContainer{ID: c.ID}) && !d.hasSubjectOf(probe) && d.ProbeAt.IsZero() {
				return fmt.Errorf("container %s is being stopped, and the decision does not continue its readiness probe", c.Name)
			}
		}
	}
	return nil
}

// longestProbe returns the longest wait of any probe for its next attempt.
func longestProbe(in Input) (longest time.Duration) {
	for _, version := range []*manifest.Pod{in.Desired, in.Previous} {
		if version == nil {
			continue
		}
		for _, c := range containersOf(&version.Object.Spec) {
			for _, kind := range probeKinds {
				if p := FindProbe(c, kind); p != nil {
					longest = max(longest, time.Duration(max(p.PeriodSeconds, p.InitialDelaySeconds, 1))*time.Second)
				}
			}
		}
	}
	return longest
}

// ownGrace returns the grace period of the startup or liveness probe of c that has failed. If no
// such probe has failed, or it has no grace period, ok is false.
func ownGrace(in Input, c *runtime.Container) (grace time.Duration, ok bool) {
	if in.Desired == nil {
		return 0, false
	}
	for _, spec := range containersOf(&in.Desired.Object.Spec) {
		for _, kind := range []ProbeKind{StartupProbe, LivenessProbe} {
			p := FindProbe(spec, kind)
			if spec.Name == c.Name && p != nil && in.History.ProbeStates[c.ID].State(kind).Health == ProbeFailed {
				if p.TerminationGracePeriodSeconds == nil {
					return 0, false
				}
				return GraceDuration(*p.TerminationGracePeriodSeconds), true
			}
		}
	}
	return 0, false
}
