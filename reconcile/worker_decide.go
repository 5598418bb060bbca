package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// decide makes the next decision and starts its actions. It returns the time at which decide must
// be called again; zero means never. decide reports the decision if mustReport is set, or if the
// state requires a report. It ignores the attempts of probes when it compares decisions, so that
// probes cause no reports.
func (w *worker) decide(ctx context.Context, mustReport bool) time.Time {
	now := w.now()
	w.applyTransition(w.state.PrepareDecision(w.inFlight(), w.dirsInUse(), now))
	w.retryWrites(now)
	d := w.nextDecision()
	mustReport = mustReport || d.UseSuccessor || d.Finished != nil || d.Stopping != nil
	if d.UseSuccessor {
		w.state = w.state.UseSuccessor(time.Now())
		d = w.nextDecision()
	}
	if d.Resume {
		w.applyTransition(w.state.Resume(time.Now()))
		mustReport, d = true, w.nextDecision()
	}
	if d.CancelStarts && w.cancelStarts() {
		return w.decide(ctx, true)
	}
	d = w.recordDecision(d, now)
	w.cancelObsolete(d)
	for _, a := range d.Actions {
		w.startAction(ctx, d, a)
	}
	if !w.needsConfirmation.Load() { // if an observation is missing, it may cause further actions of the sync
		w.trace.endSync()
	}
	w.applyTransition(w.state.RecordUrgentEnd(d, time.Now()))
	if retryAt := w.state.PlanInput.History.VolumesFailure.RetryAt; retryAt.After(now) && (d.WakeAt.IsZero() || retryAt.Before(d.WakeAt)) {
		d.WakeAt = retryAt
	}
	wakeAt := limitWake(w.nextRetry(d.NextWake()), now)
	if d = d.WithoutProbes(); mustReport || w.state.NeedsReport(d) {
		w.publish(d)
	} else if len(w.events) > 0 {
		w.send(workerUpdate{key: w.key, worker: w, seq: w.seq, events: w.takeEvents()})
	}
	return wakeAt
}

// recordDecision writes the facts that must be in the journal before the actions of decision d
// start. If the end of the pod cannot be written, recordDecision adds this problem to d, and the
// end is not published. Even then, the actions of d are started. They only stop containers and
// release volumes, and this pod may be what fills the disk.
func (w *worker) recordDecision(d plan.Decision, now time.Time) plan.Decision {
	awaitedJournal := w.state.AwaitsJournal()
	w.applyTransition(w.state.RecordDecision(d, time.Now()))
	newState, err := w.state.ConfirmEnd(d)
	w.state = newState
	if !awaitedJournal || !d.RecordFirst { // if the decision still waits for the journal, its events were already recorded
		w.events = append(w.events, w.state.DecisionEvents(d)...)
	}
	if err != nil {
		d.NeedsUser, d.Why = true, err.Error()
		d.WakeAt = now.Add(plan.RetryDelay(1))
	}
	return d
}

// nextDecision returns the decision for the current state.
func (w *worker) nextDecision() plan.Decision { return plan.Next(w.state.Input()) }

// publish logs decision d and sends its report to the router, with the events of a resize that the
// report shows.
func (w *worker) publish(d plan.Decision) {
	w.state = w.state.WithReported(d)
	w.logDecision(d)
	w.logResize()
	oldState := w.state
	r := w.newReport(d)
	w.events = append(w.events, w.state.ResizeEvents(oldState)...)
	w.logPodChange(d, r.Pod)
	w.send(workerUpdate{key: w.key, worker: w, seq: w.seq, report: r, events: w.takeEvents()})
}

// inFlight returns the actions in progress, by subject.
func (w *worker) inFlight() map[string]plan.Action {
	actions := make(map[string]plan.Action, len(w.actions))
	for subject, running := range w.actions {
		actions[subject] = running.action
	}
	return actions
}

// cancelObsolete cancels the actions in progress that d does not contain any more.
func (w *worker) cancelObsolete(d plan.Decision) {
	for _, action := range w.actions {
		if plan.IsCancellable(action.action) && !containsOperation(d.Actions, action.action) {
			action.cancel()
		}
	}
}

// containsOperation reports whether actions contains an action with the same effect as a.
func containsOperation(actions []plan.Action, a plan.Action) bool {
	return slices.ContainsFunc(actions, func(b plan.Action) bool { return plan.IsSameOperation(a, b) })
}

// uidOf returns the UID of p; "" if p is nil.
func uidOf(p *manifest.Pod) types.UID {
	if p == nil {
		return ""
	}
	return p.UID
}

// startAction starts action a of decision d unless an action with the same subject is in progress.
func (w *worker) startAction(ctx context.Context, d plan.Decision, a plan.Action) {
	subject := a.Subject()
	if _, inProgress := w.actions[subject]; inProgress {
		return
	}
	if a, ok := a.(plan.RemoveDir); ok && w.slowWrite != nil && w.slowWrite.uid == a.UID {
		return // the write in progress would create the directory again; the worker decides again when the write returns
	}
	w.applyTransition(w.state.BeginAction(a, time.Now()))
	if _, ok := a.(plan.PrepareVolumes); ok {
		if err := w.state.WriteError(w.state.PlanInput.Desired.UID); err != nil {
			w.state = w.state.WithVolumeFailure(err)
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := w.state
	input := effect.Input{
		Key: w.key, Desired: plan.WithAllocatedSizes(&s.PlanInput), Actual: plan.WithActualSizes(&s.PlanInput), IsResizePending: plan.IsResizePending(&s.PlanInput),
		Successor: s.PlanInput.Successor, Previous: s.PlanInput.Previous, Refs: s.Refs, SuccessorRefs: s.SuccessorRefs, Observed: s.PlanInput.Observed, Node: s.Order.RenderNode,
		UserIDs: s.Order.UserIDs, OnPull: w.sendPullStart, Permit: effect.NewPermit(),
	}
	ctx, span := w.trace.beginAction(ctx, d, a, cmp.Or(uidOf(input.Desired), uidOf(input.Previous)))
	w.actions[subject] = &runningAction{action: a, since: time.Now(), cancel: cancel, permit: input.Permit, uid: uidOf(input.Desired), span: span}
	w.state = w.state.WithInFlight(w.inFlight())
	w.effectsDone.Go(func() { w.results <- &actionResult{w.effects.Do(ctx, a, input), input.Permit} })
}
