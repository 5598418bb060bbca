package plan

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

var probeKinds = []ProbeKind{StartupProbe, LivenessProbe, ReadinessProbe}

// noteRunning records when a container with probes was first observed running.
func (w *world) noteRunning(c *runtime.Container) {
	spec := w.spec(c.Name)
	probed := w.in.History.ProbeStates[c.ID]
	if c.State != runtime.Running || spec == nil || !HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.RanBeforeStart = w.in.Now, !w.made[c.ID]
	w.in.History.ProbeStates = with(w.in.History.ProbeStates, c.ID, probed)
}

// applyProbe applies the result of an attempt; errLost means that it could not be made.
func (w *world) applyProbe(a RunProbe, p *manifest.Pod, began time.Time, err error) {
	probed, known := w.in.History.ProbeStates[a.ID]
	if !known {
		return
	}
	o := ProbeResult{Began: began, Passed: err == nil, Errored: errors.Is(err, errLost)}
	if err != nil {
		o.Message = err.Error()
	}
	t := probed.State(a.Kind).WithResult(FindProbe(specOf(p, a.Container), a.Kind), o)
	w.in.History.ProbeStates = with(w.in.History.ProbeStates, a.ID, probed.With(a.Kind, t))
}

// failureOf returns the error of an action in progress; nil if it succeeds.
func (w *world) failureOf(subject string) error {
	if text, fails := w.failing[subject]; fails {
		return errors.New(text)
	}
	return nil
}

// awaitsProbes reports whether a further attempt of a probe will change the health of a container.
func (w *world) awaitsProbes() bool {
	if len(w.failing) > 0 {
		return true
	}
	f := newFacts(&w.in)
	for i := range f.containers {
		m := &f.containers[i]
		for _, kind := range probeKinds {
			if m.hasState(runtime.Running) && FindProbe(m.spec, kind) != nil && f.probeState(m, kind).Health != ProbePassed && kind != StartupProbe == f.hasPassed(m, StartupProbe) {
				return true
			}
		}
	}
	return false
}

// spec returns a container of the desired version; nil if there is none.
func (w *world) spec(name string) *v1.Container { return specOf(w.in.Desired, name) }

func specOf(p *manifest.Pod, name string) *v1.Container {
	if p == nil {
		return nil
	}
	for _, c := range containersOf(&p.Object.Spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
