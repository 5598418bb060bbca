package reconcile

import (
	"context"
	"errors"

	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// sendPullStart tells the worker that the image of an action in progress is being pulled.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- pullStart{a.Subject(), e}:
	case <-ctx.Done():
	}
}

// eventDecision returns d with everything that package event needs.
func (w *worker) eventDecision(d plan.Decision) event.Decision {
	return event.Decision{
		Key: w.key, Pod: w.in.Desired, Before: w.reported, Now: d, Observed: w.in.Observed,
		Terminations: w.in.History.Terminations, Wait: w.in.Objects.Wait, At: w.in.Now,
	}
}

// outcomeEvents returns the events of a result. A canceled action has none, and neither has
// a hook that is called again because the runtime did not respond.
func (w *worker) outcomeEvents(f effect.Result) []event.Event {
	if errors.Is(f.Err, context.Canceled) || plan.IsHook(f.Action) && errors.Is(f.Err, runtime.ErrUnavailable) {
		return nil
	}
	image, _ := f.Value.(effect.EnsuredImage)
	o := event.Outcome{Subject: w.subject(f), Action: f.Action, Err: f.Err, Tried: image.Tried, Pull: image.Pull}
	if o.UID == "" {
		return nil
	}
	if pull, ok := errors.AsType[*runtime.PullError](f.Err); ok {
		o.Reason = pull.Reason
	}
	if start, ok := errors.AsType[*effect.StartError](f.Err); ok {
		o.Reason = start.Reason
	}
	_, o.Later = errors.AsType[*effect.RetryLaterError](f.Err)
	return event.Did(o)
}

// subject returns the pod that an action was for. An action that stops something may be for
// an earlier version, or for a pod that is not desired any more.
func (w *worker) subject(f effect.Result) event.Subject {
	s := event.Subject{Key: w.key, At: f.Ended}
	var inc *runtime.Incarnation
	switch a := f.Action.(type) {
	case plan.CheckVolumes:
		s.UID = a.UID
		return s
	case plan.StopContainer:
		inc, _ = runtime.FindContainer(w.in.Observed, a.ID)
	case plan.PreStop:
		inc, _ = runtime.FindContainer(w.in.Observed, a.ID)
	case plan.StopSandbox:
		inc = runtime.FindSandbox(w.in.Observed, a.ID)
	default:
		if f.Version == nil {
			return s
		}
		return event.On(f.Version, f.Ended)
	}
	if inc != nil {
		s.UID, s.Pod = inc.UID, plan.VersionOf(inc, w.in.Desired, w.in.Previous)
	}
	return s
}
