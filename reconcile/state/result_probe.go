package state

import (
	"podd/manifest/wording"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// applyProbe records the result of a probe attempt. news reports whether the health or the message
// of the probe has changed.
func (t *transition) applyProbe(a plan.RunProbe, f result.Result) (news bool) {
	history, known := t.PlanInput.History.ProbeStates[a.ID]
	if !known || f.Version == nil {
		return false
	}
	c, _, _ := plan.FindContainer(f.Version.Object, a.Container)
	probed, _ := f.Value.(result.ProbeAttempt)
	o := plan.ProbeResult{Began: f.Began, Passed: probed.Passed, Message: probed.Message}
	if f.Err != nil {
		o.Errored, o.Message = true, wording.FirstLine(f.Err.Error())
	}
	was := history.State(a.Kind)
	now := was.WithResult(plan.FindProbe(c, a.Kind), o)
	t.addEvents(event.ForProbe(event.NewSubject(f.Version, f.Ended), a, o, probed.IsWarning)...)
	if probed.IsWarning && !was.Warned {
		now.Warned = true
		t.warn("probe warning", "container", a.Container, "probe", a.Kind, "why", probed.Message)
	}
	t.PlanInput.History.ProbeStates = withKey(t.PlanInput.History.ProbeStates, a.ID, history.With(a.Kind, now))
	if now.Health != was.Health {
		if f.IsFor(t.PlanInput.Desired) {
			t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
		}
		if was.Health == plan.ProbeFailed {
			t.info("container is healthy again", "container", a.Container, "probe", a.Kind)
		}
	}
	return now.Health != was.Health || now.Message != was.Message
}
