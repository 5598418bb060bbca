package reconcile

import (
	"context"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// decide plans until the decision is final, starts its actions, and returns when to plan
// again. If there is no news, and only attempts of probes differ from the previous
// decision, nothing is reported, so that no status is computed for each probe.
func (w *worker) decide(ctx context.Context, news bool) time.Time {
	now := w.now()
	w.apply(w.state.Recall(w.inFlight(), w.used(), now))
	w.retryWrites(now)
	d := w.next()
	news = news || d.Replace || d.Finished != nil || d.Stopping != nil
	if d.Replace {
		w.state = w.state.Succeed(time.Now())
		d = w.next()
	}
	if d.Resume {
		w.apply(w.state.Resume(time.Now()))
		news, d = true, w.next()
	}
	if d.CancelStarts && w.cancelStarts() {
		return w.decide(ctx, true)
	}
	d = w.commit(d, now)
	w.cancelUnnamed(d)
	for _, a := range d.Actions {
		w.startAction(ctx, a)
	}
	w.apply(w.state.CommitLate(d, time.Now()))
	if at := w.state.In.History.Volumes.Until; at.After(now) && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake = at
	}
	next := wakeBy(w.nextRetry(d.Next()), now)
	if d = d.WithoutProbes(); news || !reflect.DeepEqual(d, w.state.Reported) {
		w.publish(d)
	} else if len(w.events) > 0 {
		w.send(update{key: w.key, worker: w, seq: w.seq, events: w.takeEvents()})
	}
	return next
}

// commit records what a decision requires to be written before its actions start. If the
// journal with the end of the pod cannot be written, it returns the decision with that
// problem: the end is not published, and the actions only free what the pod still uses,
// which may be what fills the disk.
func (w *worker) commit(d plan.Decision, now time.Time) plan.Decision {
	waited := w.state.AwaitsJournal()
	w.apply(w.state.Commit(d, time.Now()))
	next, err := w.state.Finish(d)
	w.state = next
	if !waited || !d.RecordFirst { // a decision that waits for the journal is repeated
		w.events = append(w.events, w.state.DecisionEvents(d)...)
	}
	if err != nil {
		d.Problem, d.Why = true, err.Error()
		d.Wake = now.Add(plan.RetryDelay(1))
	}
	return d
}

// next returns the decision for the present state.
func (w *worker) next() plan.Decision { return plan.Next(w.state.Input()) }

// publish logs and reports a decision.
func (w *worker) publish(d plan.Decision) {
	w.state = w.state.Report(d)
	w.logDecision(d)
	w.logResize()
	r := w.newReport(d)
	w.logOutcome(d, r.Pod)
	w.send(update{key: w.key, worker: w, seq: w.seq, report: r, events: w.takeEvents()})
}

// inFlight returns the actions in progress, by subject.
func (w *worker) inFlight() map[string]plan.Action {
	out := make(map[string]plan.Action, len(w.flights))
	for subject, fl := range w.flights {
		out[subject] = fl.action
	}
	return out
}

// cancelUnnamed cancels the actions that the decision no longer has.
func (w *worker) cancelUnnamed(d plan.Decision) {
	for _, fl := range w.flights {
		if plan.Cancellable(fl.action) && !isNamed(d.Actions, fl.action) {
			fl.cancel()
		}
	}
}

// isNamed reports whether actions contains the undertaking of a.
func isNamed(actions []plan.Action, a plan.Action) bool {
	return slices.ContainsFunc(actions, func(b plan.Action) bool { return plan.SameOperation(a, b) })
}

// uidOf returns the UID of a pod, "" if p is nil.
func uidOf(p *manifest.Pod) types.UID {
	if p == nil {
		return ""
	}
	return p.UID
}

// startAction starts an action unless one with its subject is in progress.
func (w *worker) startAction(ctx context.Context, a plan.Action) {
	subject := a.Subject()
	if _, busy := w.flights[subject]; busy {
		return
	}
	if a, ok := a.(plan.RemoveDir); ok && w.writing != nil && w.writing.uid == a.UID {
		return // the write would create the directory again; its end triggers another decision
	}
	w.apply(w.state.Begin(a, time.Now()))
	if _, ok := a.(plan.PrepareVolumes); ok {
		if err := w.state.WriteError(w.state.In.Desired.UID); err != nil {
			w.state = w.state.VolumesFailed(err)
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &w.state
	in := effect.Input{
		Key: w.key, Desired: plan.Allocated(&s.In), Actual: plan.Actual(&s.In), ResizePending: plan.ResizePending(&s.In),
		Successor: s.In.Successor, Previous: s.In.Previous, Refs: s.Refs, NextRefs: s.NextRefs, Observed: s.In.Observed, Node: s.Order.Render,
		UserIDs: s.Order.UserIDs, Pulling: w.sendPullStart, Permit: effect.NewPermit(),
	}
	w.flights[subject] = flight{action: a, since: time.Now(), cancel: cancel, permit: in.Permit, uid: uidOf(in.Desired)}
	w.state = w.state.WithInFlight(w.inFlight())
	w.running.Go(func() { w.results <- ended{w.effects.Do(ctx, a, in), in.Permit} })
}
