package reconcile

import (
	"time"

	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/status"
	"podd/runtime"
)

// applyProbe records the result of a probe attempt. It reports whether that is news; most
// attempts only confirm the previous result.
func (w *worker) applyProbe(a plan.Probe, f effect.Result) (news bool) {
	probed, known := w.in.History.Probed[a.ID]
	if !known || f.Version == nil {
		return false
	}
	c, _, _ := plan.FindContainer(f.Version.Spec, a.Container)
	result, _ := f.Value.(effect.ProbeResult)
	o := plan.ProbeResult{Began: f.Began, Passed: result.Passed, Message: result.Message}
	if f.Err != nil {
		o.Errored, o.Message = true, probe.Line(f.Err.Error())
	}
	was := probed.State(a.Kind)
	now := was.After(plan.ProbeOf(c, a.Kind), o)
	w.events = append(w.events, event.Probed(event.On(f.Version, f.Ended), a, o, result.Warning)...)
	if result.Warning && !was.Warned {
		now.Warned = true
		w.log.Warn("probe warning", "container", a.Container, "probe", a.Kind, "why", result.Message)
	}
	w.in.History.Probed = with(w.in.History.Probed, a.ID, probed.With(a.Kind, now))
	if now.Health != was.Health {
		if f.IsFor(w.in.Desired) {
			w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
		}
		if was.Health == plan.Failed {
			w.log.Info("healthy again", "container", a.Container, "probe", a.Kind)
		}
	}
	return now.Health != was.Health || now.Message != was.Message
}

// recordRunning records when a container with probes was first observed to run. adopted
// reports whether it was not started just now.
func (w *worker) recordRunning(c *runtime.Container, adopted bool, now time.Time) {
	if c.State != runtime.Running {
		return
	}
	spec, _, _ := plan.FindContainer(w.in.Desired.Spec, c.Name)
	probed := w.in.History.Probed[c.ID]
	if spec == nil || !plan.HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.Adopted = now, adopted
	w.in.History.Probed = with(w.in.History.Probed, c.ID, probed)
}

// journaledProbes returns the results of probes that the journal stores; nil if there are
// none.
func journaledProbes(all map[string]plan.Probed) map[string]plan.Probed {
	var kept map[string]plan.Probed
	for id, p := range all {
		if p.Startup.Health != "" || p.Liveness.Health != "" || p.Readiness.Health != "" {
			kept = with(kept, id, p)
		}
	}
	return kept
}

// addProbeFacts adds the results of probes to the facts of the running containers.
func (w *worker) addProbeFacts(f *status.Facts) {
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

// passed returns true if the probe passed, and nil otherwise, so that the status uses the
// default for a container with or without that probe.
func passed(t plan.ProbeState) *bool {
	if t.Health != plan.Passed {
		return nil
	}
	yes := true
	return &yes
}
