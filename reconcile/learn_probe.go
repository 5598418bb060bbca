package reconcile

import (
	"time"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/status"
	"podd/runtime"
)

// learnProbe takes what came of an attempt, and tells whether that is news: most
// attempts only say again what is known.
func (w *worker) learnProbe(a plan.Probe, f fact) (news bool) {
	probed, known := w.in.History.Probed[a.ID]
	if !known || f.version == nil {
		return false
	}
	c, _, _ := findContainer(f.version.Spec, a.Container)
	o := plan.Outcome{Began: f.began, Passed: f.probe.Passed, Message: f.probe.Message}
	if f.err != nil {
		o.Errored, o.Message = true, probe.Line(f.err.Error())
	}
	was := probed.Of(a.Kind)
	now := was.After(plan.ProbeOf(c, a.Kind), o)
	w.events = append(w.events, event.Probed(event.On(f.version, f.ended), a, o, f.probe.Warning)...)
	if f.probe.Warning && !was.Warned {
		now.Warned = true
		w.log.Warn("probe warning", "container", a.Container, "probe", a.Kind, "why", f.probe.Message)
	}
	w.in.History.Probed = with(w.in.History.Probed, a.ID, probed.With(a.Kind, now))
	if now.Health != was.Health {
		if f.of(w.in.Desired) {
			w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
		}
		if was.Health == plan.Failed {
			w.log.Info("healthy again", "container", a.Container, "probe", a.Kind)
		}
	}
	return now.Health != was.Health || now.Message != was.Message
}

// noteRunning takes a container that was seen to run and has probes. When podd
// started it, that was just now.
func (w *worker) noteRunning(c *runtime.Container, adopted bool, now time.Time) {
	if c.State != runtime.Running {
		return
	}
	spec, _, _ := findContainer(w.in.Desired.Spec, c.Name)
	probed := w.in.History.Probed[c.ID]
	if spec == nil || !plan.HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.Adopted = now, adopted
	w.in.History.Probed = with(w.in.History.Probed, c.ID, probed)
}

// verdicts are what a journal keeps of probes; nil for nothing.
func verdicts(all map[string]plan.Probed) map[string]plan.Probed {
	var kept map[string]plan.Probed
	for id, p := range all {
		if p.Startup.Health != "" || p.Liveness.Health != "" || p.Readiness.Health != "" {
			kept = with(kept, id, p)
		}
	}
	return kept
}

// tellProbes adds what probes say of the containers that run.
func (w *worker) tellProbes(f *status.Facts) {
	for i := range w.in.Observed {
		if !plan.Runs(f.Pod, &w.in.Observed[i]) {
			continue
		}
		for _, c := range w.in.Observed[i].Containers {
			probed, known := w.in.History.Probed[c.ID]
			if !known || c.State != runtime.Running {
				continue
			}
			facts := f.Containers[c.Name]
			facts.Started, facts.Ready = passed(probed.Startup), passed(probed.Readiness)
			f.Containers[c.Name] = facts
		}
	}
}

// passed is a probe's yes; without one the status knows what it means that there
// is a probe, or none.
func passed(t plan.Trial) *bool {
	if t.Health != plan.Passed {
		return nil
	}
	yes := true
	return &yes
}
