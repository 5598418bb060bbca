package plan

import (
	"hash/fnv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// probeState returns the state of the probe of this kind of the container m.last. It is zero if
// m.last is nil.
func (f *facts) probeState(m *containerFacts, kind ProbeKind) ProbeState {
	if m.last == nil {
		return ProbeState{}
	}
	return f.in.History.ProbeStates[m.last.ID].State(kind)
}

// hasPassed reports whether the container runs and its probe of this kind has passed. A missing
// probe counts as passed.
func (f *facts) hasPassed(m *containerFacts, kind ProbeKind) bool {
	return m.hasState(runtime.Running) && (FindProbe(m.spec, kind) == nil || f.probeState(m, kind).Health == ProbePassed)
}

// hasFailedProbe returns a condition of a container rule. The condition is true if the probe of
// this kind has failed.
func hasFailedProbe(kind ProbeKind) func(*facts, *containerFacts) bool {
	return func(f *facts, m *containerFacts) bool {
		return m.hasState(runtime.Running) && FindProbe(m.spec, kind) != nil && f.probeState(m, kind).Health == ProbeFailed
	}
}

// stopUnhealthy returns the action of a container rule that stops a container because the probe of
// this kind has failed. The grace period is that of the probe, or of the pod if the probe has none.
// The container is restarted by other rules after it has exited.
func stopUnhealthy(kind ProbeKind) func(*facts, *containerFacts, *Decision, *Step) {
	return func(f *facts, m *containerFacts, d *Decision, s *Step) {
		s.Why, s.NeedsUser, s.Probe = f.probeState(m, kind).describe(kind), true, kind
		grace := graceOf(f.current)
		if probeGrace := FindProbe(m.spec, kind).TerminationGracePeriodSeconds; probeGrace != nil {
			grace = GraceDuration(*probeGrace)
		}
		f.beginStop(d, m, stopBudget{grace: grace, why: s.Why, hasFailedProbe: true})
	}
}

// isUnstarted reports whether a container runs and its startup probe has not passed.
func isUnstarted(f *facts, m *containerFacts) bool {
	return m.hasState(runtime.Running) && !f.hasPassed(m, StartupProbe)
}

// waitStarted runs the startup probe. A failed attempt alone does not set NeedsUser, because
// attempts normally fail while a container starts.
func waitStarted(f *facts, m *containerFacts, d *Decision, s *Step) {
	f.showProbe(m, StartupProbe, s)
	f.scheduleProbe(m, d, StartupProbe)
}

// showProbe sets s.Why to the message of a probe that has not passed. If a user must act, it also
// sets s.NeedsUser and s.Probe.
func (f *facts) showProbe(m *containerFacts, kind ProbeKind, s *Step) {
	t := f.probeState(m, kind)
	s.Why = t.describe(kind)
	if t.needsUser() {
		s.NeedsUser, s.Probe = true, kind
	}
}

// isUnready reports whether a container runs and its readiness probe has not passed.
func isUnready(f *facts, m *containerFacts) bool {
	return m.hasState(runtime.Running) && !f.hasPassed(m, ReadinessProbe)
}

func waitReadiness(f *facts, m *containerFacts, d *Decision, s *Step) {
	f.showProbe(m, ReadinessProbe, s)
	f.probeStartedContainer(m, d)
}

// probeStartedContainer runs the liveness and readiness probes of a container that has started.
func (f *facts) probeStartedContainer(m *containerFacts, d *Decision) {
	f.scheduleProbe(m, d, LivenessProbe)
	f.scheduleProbe(m, d, ReadinessProbe)
}

// continueReadiness continues the readiness probe of a container that is being stopped, so that the
// status shows when the container is not ready any more. It does nothing if the probe has not
// begun, because the container may not have started.
func (f *facts) continueReadiness(m *containerFacts, d *Decision) {
	if m.hasState(runtime.Running) && f.probeState(m, ReadinessProbe) != (ProbeState{}) {
		f.scheduleProbe(m, d, ReadinessProbe)
	}
}

// continueReadinessInStop continues the readiness probe of a container in a pod that is being
// stopped. It does nothing if the pod has finished, because such a pod is not ready.
func (f *facts) continueReadinessInStop(d *Decision, inc *runtime.Incarnation, c *runtime.Container) {
	p := FindVersion(inc, f.in.Desired, f.in.Previous)
	if p == nil || d.Phase != PhaseStop {
		return
	}
	for _, spec := range containersOf(&p.Object.Spec) {
		if spec.Name == c.Name {
			f.continueReadiness(&containerFacts{spec: spec, last: c}, d)
		}
	}
}

// scheduleProbe adds an attempt to d if the attempt is due or in progress. Otherwise it sets
// ProbeAt.
func (f *facts) scheduleProbe(m *containerFacts, d *Decision, kind ProbeKind) {
	p := FindProbe(m.spec, kind)
	if p == nil {
		return
	}
	a := RunProbe{Container: m.spec.Name, ID: m.last.ID, Kind: kind}
	at := f.nextAttemptAt(m, kind, p)
	if f.in.InFlight[a.Subject()] == Action(a) || !f.in.Now.Before(at) {
		d.addAction(a)
		return
	}
	d.probeAt(at)
}

// nextAttemptAt returns the time at which the next attempt is due. The initial delay begins at the
// first observation of the running container. It is shortened by the time from the start to that
// observation, which is measured by the runtime's clock.
func (f *facts) nextAttemptAt(m *containerFacts, kind ProbeKind, p *v1.Probe) time.Time {
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	probes := f.in.History.ProbeStates[m.last.ID]
	if t := probes.State(kind); !t.Began.IsZero() {
		if t.Errors%maxImmediateTries != 0 {
			return t.Began
		}
		return t.Began.Add(period)
	}
	observedSince := probes.Since
	if observedSince.IsZero() {
		observedSince = f.in.Now
	}
	delay := time.Duration(max(p.InitialDelaySeconds, 0)) * time.Second
	delay -= min(max(observedSince.Sub(m.last.StartedAt), 0), delay)
	if probes.RanBeforeStart {
		delay = max(delay, firstAttemptDelay(m.last.ID, kind, period))
	}
	return observedSince.Add(delay)
}

// firstAttemptDelay returns a duration of less than period, which is always the same for one
// container ID and kind. It delays the first attempt in a container that ran before podd was
// started, so that podd does not probe all existing pods at the same time.
func firstAttemptDelay(id string, kind ProbeKind, period time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(string(kind) + "/" + id))
	return time.Duration(h.Sum64() % uint64(period))
}
