package reconcile

import (
	"context"
	"errors"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// hear takes that the image of an action under way begins to be fetched.
func (w *worker) hear(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.heard <- fetch{a.Subject(), e}:
	case <-ctx.Done():
	}
}

// decision is one with what package event has to know of it.
func (w *worker) decision(d plan.Decision) event.Decision {
	return event.Decision{
		Key: w.key, Pod: w.in.Desired, Before: w.told, Now: d, Observed: w.in.Observed,
		Endings: w.in.History.Endings, Wait: w.in.Objects.Wait, At: w.in.Now,
	}
}

// did tells what came of an action. What was given up, or is made again since
// the runtime did not answer, came to nothing.
func (w *worker) did(f fact) []event.Event {
	if errors.Is(f.err, context.Canceled) || plan.IsHook(f.action) && errors.Is(f.err, runtime.ErrUnavailable) {
		return nil
	}
	o := event.Outcome{Subject: w.subject(f), Action: f.action, Err: f.err, Tried: f.tried, Pull: f.pull}
	if o.UID == "" {
		return nil
	}
	if pull, ok := errors.AsType[*runtime.PullError](f.err); ok {
		o.Reason = pull.Reason
	}
	if start, ok := errors.AsType[*startError](f.err); ok {
		o.Reason = start.reason
	}
	_, o.Later = errors.AsType[*Later](f.err)
	return event.Did(o)
}

// subject is the pod that an action was for: what it ends may be of another
// version than the one in force, or of one that nobody wants any more.
func (w *worker) subject(f fact) event.Subject {
	s := event.Subject{Key: w.key, At: f.ended}
	var inc *runtime.Incarnation
	switch a := f.action.(type) {
	case plan.CheckVolumes:
		s.UID = a.UID
		return s
	case plan.StopContainer:
		inc, _ = findRecord(w.in.Observed, a.ID)
	case plan.PreStop:
		inc, _ = findRecord(w.in.Observed, a.ID)
	case plan.StopSandbox:
		inc = incarnation(w.in.Observed, a.ID)
	default:
		if f.version == nil {
			return s
		}
		return event.On(f.version, f.ended)
	}
	if inc != nil {
		s.UID, s.Pod = inc.UID, plan.VersionOf(inc, w.in.Desired, w.in.Leaving)
	}
	return s
}

func incarnation(observed []runtime.Incarnation, id string) *runtime.Incarnation {
	for i := range observed {
		if observed[i].ID == id {
			return &observed[i]
		}
	}
	return nil
}
