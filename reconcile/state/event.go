package state

import (
	"errors"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// DecisionEvents returns the events of decision d, compared with the last reported decision.
func (s *State) DecisionEvents(d plan.Decision) []event.Event {
	return event.ForDecision(event.DecisionChange{
		Key: s.Key, Pod: s.PlanInput.Desired, Before: s.ReportedDecision, After: d, Observed: s.PlanInput.Observed,
		Terminations: s.PlanInput.History.Terminations, Eviction: s.PlanInput.Eviction, Blocker: s.PlanInput.Objects.Blocker, At: s.PlanInput.Now,
	})
}

// ResizeEvents returns the events for the changes to the resize of the pod since oldState. It
// compares the pods that the two states have published.
func (s *State) ResizeEvents(oldState *State) []event.Event {
	desired := s.PlanInput.Desired
	if desired == nil || s.publishedPod == nil || s.publishedPod == oldState.publishedPod {
		return nil
	}
	c := event.ResizeChange{
		Subject: event.NewSubject(desired, s.PlanInput.Now), After: s.publishedPod, IsPending: plan.IsResizePending(&s.PlanInput),
	}
	switch {
	case oldState.publishedVersion != nil && EqualVersion(oldState.publishedVersion, desired):
		c.Before, c.IsNewSize = oldState.publishedPod, !desired.HasSizesOf(oldState.publishedVersion)
	case desired.Traits.HasStateAtSource:
		c.Before = desired.Object // the pod of the source, with the status that an earlier podd reported
	}
	return event.ForResize(c)
}

// resultEvents returns the events of a result. It returns nil for a canceled action, and for a
// hook that will be called again because the runtime did not respond.
func (t *transition) resultEvents(f result.Result) []event.Event {
	if f.Canceled || plan.IsHook(f.Action) && errors.Is(f.Err, runtime.ErrUnavailable) {
		return nil
	}
	image, _ := f.Value.(result.EnsuredImage)
	hook, _ := f.Value.(result.CalledHook)
	o := event.Outcome{Subject: t.subject(f), Action: f.Action, Err: f.Err, ContactedRegistry: image.ContactedRegistry, Pull: image.Pull, VolumeImages: image.VolumeImages, HookPlainHost: hook.PlainHost}
	if o.UID == "" {
		return nil
	}
	if pull, ok := errors.AsType[*runtime.PullError](f.Err); ok {
		o.Reason, o.FailedImage = pull.Reason, pull.Image
	}
	if start, ok := errors.AsType[*result.StartError](f.Err); ok {
		o.Reason = start.Reason
	}
	if status, ok := errors.AsType[*result.SandboxStatusError](f.Err); ok {
		o.StatusErr = status.Err
	}
	_, o.BacksOff = errors.AsType[*result.RetryLaterError](f.Err)
	return event.ForOutcome(o)
}

// subject returns the pod for which an action was carried out. If the action is a stop, the pod may
// be an earlier version, or may not be desired any more. The UID in the returned Subject is "" if
// the pod is unknown.
func (t *transition) subject(f result.Result) event.Subject {
	s := event.Subject{Key: t.Key, At: f.Ended}
	var inc *runtime.Incarnation
	switch a := f.Action.(type) {
	case plan.CheckVolumes:
		s.UID = a.UID
		return s
	case plan.StopContainer:
		inc, _ = runtime.FindContainer(t.PlanInput.Observed, a.ID)
	case plan.RunPreStop:
		inc, _ = runtime.FindContainer(t.PlanInput.Observed, a.ID)
	case plan.StopSandbox:
		inc = runtime.FindSandbox(t.PlanInput.Observed, a.ID)
	default:
		if f.Version == nil {
			return s
		}
		return event.NewSubject(f.Version, f.Ended)
	}
	if inc != nil {
		s.UID, s.Pod = inc.UID, plan.FindVersion(inc, t.PlanInput.Desired, t.PlanInput.Previous)
	}
	return s
}
