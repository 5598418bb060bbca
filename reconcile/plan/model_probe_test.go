package plan

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

var probeKinds = []ProbeKind{Startup, Liveness, Readiness}

// noteRunning is what a worker remembers of a container with probes.
func (w *world) noteRunning(c *runtime.Container) {
	spec := w.spec(c.Name)
	probed := w.in.History.Probed[c.ID]
	if c.State != runtime.Running || spec == nil || !HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.Adopted = w.in.Now, !w.made[c.ID]
	w.in.History.Probed = with(w.in.History.Probed, c.ID, probed)
}

// learnProbe takes what came of an attempt; errLost is that none could be made.
func (w *world) learnProbe(a Probe, p *manifest.Pod, began time.Time, err error) {
	probed, known := w.in.History.Probed[a.ID]
	if !known {
		return
	}
	o := Outcome{Began: began, Passed: err == nil, Errored: errors.Is(err, errLost)}
	if err != nil {
		o.Message = err.Error()
	}
	t := probed.Of(a.Kind).After(ProbeOf(specOf(p, a.Container), a.Kind), o)
	w.in.History.Probed = with(w.in.History.Probed, a.ID, probed.With(a.Kind, t))
}

// ailing is what an action under way fails with when nothing else is said.
func (w *world) ailing(subject string) error {
	if text, ails := w.ails[subject]; ails {
		return errors.New(text)
	}
	return nil
}

// unsettled: attempts of probes will yet change something.
func (w *world) unsettled() bool {
	if len(w.ails) > 0 {
		return true
	}
	f := sortFacts(&w.in)
	for i := range f.members {
		m := &f.members[i]
		for _, kind := range probeKinds {
			if m.is(runtime.Running) && ProbeOf(m.spec, kind) != nil && f.trial(m, kind).Health != Passed && kind != Startup == f.passed(m, Startup) {
				return true
			}
		}
	}
	return false
}

// spec is a container of the version in force, nil for none.
func (w *world) spec(name string) *v1.Container { return specOf(w.in.Desired, name) }

func specOf(p *manifest.Pod, name string) *v1.Container {
	if p == nil {
		return nil
	}
	for _, c := range containersOf(&p.Spec.Spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
