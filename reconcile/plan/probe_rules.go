package plan

import (
	"hash/fnv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// trial is what is known of a probe of the container that m is now.
func (f *facts) trial(m *member, kind ProbeKind) Trial {
	if m.last == nil {
		return Trial{}
	}
	return f.in.History.Probed[m.last.ID].Of(kind)
}

// passed: it runs, and no probe of this kind objects.
func (f *facts) passed(m *member, kind ProbeKind) bool {
	return m.is(runtime.Running) && (ProbeOf(m.spec, kind) == nil || f.trial(m, kind).Health == Passed)
}

// failing makes the condition of a probe that ends its container.
func failing(kind ProbeKind) func(*facts, *member) bool {
	return func(f *facts, m *member) bool {
		return m.is(runtime.Running) && ProbeOf(m.spec, kind) != nil && f.trial(m, kind).Health == Failed
	}
}

// stopUnhealthy ends a container with its probe's own grace, where it has one;
// the ordinary rules start it again.
func stopUnhealthy(kind ProbeKind) func(*facts, *member, *Decision, *Step) {
	return func(f *facts, m *member, d *Decision, s *Step) {
		s.Why, s.Problem, s.Probe = f.trial(m, kind).why(kind), true, kind
		grace := graceOf(f.cur)
		if own := ProbeOf(m.spec, kind).TerminationGracePeriodSeconds; own != nil {
			grace = Grace(*own)
		}
		f.end(d, m, grace, s.Why)
	}
}

func unstarted(f *facts, m *member) bool { return m.is(runtime.Running) && !f.passed(m, Startup) }

// waitStarted: a failure before the last one allowed is what starting is like.
func waitStarted(f *facts, m *member, d *Decision, s *Step) {
	f.explain(m, Startup, s)
	f.attempt(m, d, Startup)
}

// explain tells of a probe that has not passed.
func (f *facts) explain(m *member, kind ProbeKind, s *Step) {
	t := f.trial(m, kind)
	s.Why = t.why(kind)
	if t.hopeless() {
		s.Problem, s.Probe = true, kind
	}
}

func unready(f *facts, m *member) bool { return m.is(runtime.Running) && !f.passed(m, Readiness) }

func waitReadiness(f *facts, m *member, d *Decision, s *Step) {
	f.explain(m, Readiness, s)
	f.watch(m, d)
}

// watch makes the attempts of a container that has started.
func (f *facts) watch(m *member, d *Decision) {
	f.attempt(m, d, Liveness)
	f.attempt(m, d, Readiness)
}

// askOn goes on asking a container that ends whether it is ready, so that all see
// when it is not any more. Nothing else is asked, and nothing that was not before:
// it may have ended before it started for others.
func (f *facts) askOn(m *member, d *Decision) {
	if m.is(runtime.Running) && f.trial(m, Readiness) != (Trial{}) {
		f.attempt(m, d, Readiness)
	}
}

// askLeaving does so in a pod that ends, unless it has finished: then it is not
// ready whatever it says.
func (f *facts) askLeaving(d *Decision, inc *runtime.Incarnation, c *runtime.Container) {
	p := VersionOf(inc, f.in.Desired, f.in.Leaving)
	if p == nil || d.Phase != PhaseStop {
		return
	}
	for _, spec := range containersOf(&p.Spec.Spec) {
		if spec.Name == c.Name {
			f.askOn(&member{spec: spec, last: c}, d)
		}
	}
}

// attempt names an attempt that is due or under way, else when it will be.
func (f *facts) attempt(m *member, d *Decision, kind ProbeKind) {
	p := ProbeOf(m.spec, kind)
	if p == nil {
		return
	}
	a := Probe{Container: m.spec.Name, ID: m.last.ID, Kind: kind}
	at := f.dueAt(m, kind, p)
	if f.in.InFlight[a.Subject()] == Action(a) || !f.in.Now.Before(at) {
		d.do(a)
		return
	}
	d.probeAt(at)
}

// dueAt is when the next attempt is to be made. The first is measured from when
// the container was seen to run, less what had passed by the runtime's clock.
func (f *facts) dueAt(m *member, kind ProbeKind, p *v1.Probe) time.Time {
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	probed := f.in.History.Probed[m.last.ID]
	if t := probed.Of(kind); !t.Began.IsZero() {
		if t.Errors%probeTries != 0 {
			return t.Began
		}
		return t.Began.Add(period)
	}
	since := probed.Since
	if since.IsZero() {
		since = f.in.Now
	}
	delay := time.Duration(max(p.InitialDelaySeconds, 0)) * time.Second
	delay -= min(max(since.Sub(m.last.StartedAt), 0), delay)
	if probed.Adopted {
		delay = max(delay, spread(m.last.ID, kind, period))
	}
	return since.Add(delay)
}

// spread is a part of a period, another one for each container and kind: after
// a start of podd the pods it finds are not all probed in one instant.
func spread(id string, kind ProbeKind, period time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(string(kind) + "/" + id))
	return time.Duration(h.Sum64() % uint64(period))
}
