package state

import (
	"podd/manifest/wording"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// applyProbe records the result of a probe attempt. It reports whether the health or the message of
// the probe has changed.
func (t *transition) applyProbe(a plan.RunProbe, f result.Result) (hasChanged bool) {
	history, isRunning := t.PlanInput.History.ProbeStates[a.ID]
	if !isRunning || f.Version == nil {
		return false
	}
	c, _, _ := plan.FindContainer(f.Version.Object, a.Container)
	attempt, _ := f.Value.(result.ProbeAttempt)
	o := plan.ProbeResult{Began: f.Began, Passed: attempt.Passed, Message: attempt.Message}
	if f.Err != nil {
		o.Errored, o.Message = true, wording.FirstLine(f.Err.Error())
	}
	oldState := history.State(a.Kind)
	newState := oldState.WithResult(plan.FindProbe(c, a.Kind), o)
	t.addEvents(event.ForProbe(event.NewSubject(f.Version, f.Ended), a, o, attempt.IsWarning)...)
	if attempt.IsWarning && !oldState.Warned {
		newState.Warned = true
		t.warn("probe warning", "container", a.Container, "probe", a.Kind, "why", attempt.Message)
	}
	t.PlanInput.History.ProbeStates = withKey(t.PlanInput.History.ProbeStates, a.ID, history.With(a.Kind, newState))
	if newState.Health != oldState.Health {
		if f.IsFor(t.PlanInput.Desired) {
			t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
		}
		if oldState.Health == plan.ProbeFailed {
			t.info("container is healthy again", "container", a.Container, "probe", a.Kind)
		}
	}
	return newState.Health != oldState.Health || newState.Message != oldState.Message
}
