package reconcile

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// decide plans until the decision is final, starts its actions, and returns when to plan
// again. If there is no news, and only attempts of probes differ from the previous
// decision, nothing is reported, so that no status is computed for each probe.
func (w *worker) decide(ctx context.Context, news bool) time.Time {
	now := w.now()
	if w.recordObserved(now) && runsToEnd(w.in.Desired) {
		w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
	}
	w.recordTakenOver()
	w.retryWrites(now)
	w.forgetStopped()
	w.in.Now = now
	w.in.History.Allocated = w.in.AllocatedSizes()
	w.in.InFlight, w.in.DirsInUse = w.inFlight(), w.used()
	d := w.next()
	news = news || d.Replace || d.Finished != nil || d.Stopping != nil
	if d.Replace {
		w.setVersion(w.in.Successor)
		w.applySupplies()
		d = w.next()
	}
	if d.Resume {
		w.resumeAfterShutdown()
		news, d = true, w.next()
	}
	if d.CancelStarts && w.cancelStarts() {
		return w.decide(ctx, true)
	}
	waited := w.finishing != nil
	err := w.commit(d)
	if !waited || !d.RecordFirst { // a decision that waits for the journal is repeated
		w.events = append(w.events, event.Decided(w.eventDecision(d))...)
	}
	if err != nil {
		// The end is not published. The actions only free what the pod still uses, which
		// may be what fills the disk.
		d.Problem, d.Why = true, err.Error()
		d.Wake = now.Add(plan.RetryDelay(1))
	}
	w.cancelUnnamed(d)
	for _, a := range d.Actions {
		w.startAction(ctx, a)
	}
	if err == nil {
		w.commitLate(d)
	}
	if at := w.in.History.Volumes.Until; at.After(now) && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake = at
	}
	next := wakeBy(w.nextRetry(d.Next()), now)
	if d = d.WithoutProbes(); news || !reflect.DeepEqual(d, w.reported) {
		w.publish(d)
	} else if len(w.events) > 0 {
		w.report(Report{Key: w.key, worker: w, seq: w.seq, events: w.takeEvents(), eventsOnly: true})
	}
	return next
}

// next returns the decision for the present state.
func (w *worker) next() plan.Decision {
	w.in.JournalError = ""
	if p := w.in.Desired; p != nil && w.unreadable[p.UID] != nil {
		w.in.JournalError = fmt.Sprintf("%s cannot be read: %v", filepath.Join(w.journals.path(p.UID), journalName), w.unreadable[p.UID])
	}
	return plan.Next(w.in)
}

// publish logs and reports a decision.
func (w *worker) publish(d plan.Decision) {
	w.reported = d
	w.logDecision(d)
	w.logResize()
	r := w.newReport(d)
	r.events = w.takeEvents()
	w.logOutcome(d, r.Pod)
	w.report(r)
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
	if _, ok := a.(plan.PrepareVolumes); ok {
		w.setDir(plan.Dir{UID: w.in.Desired.UID, Hash: w.in.Desired.Hash, Volumes: true})
		if err := w.writeJournal(w.in.Desired.UID, w.in.Desired.Hash); err != nil {
			w.volumesFailed(err)
			return
		}
	}
	if stop, ok := a.(plan.StopContainer); ok && stop.Again {
		w.container(stop.Container, func(h *plan.ContainerHistory) { h.RestartID = stop.ID })
	}
	if a, ok := a.(plan.StartContainer); ok && a.PostStart {
		w.setPostStart(a.Container, plan.Hook{Attempt: a.Attempt, Owed: true})
	}
	w.recordDoubts(a)
	ctx, cancel := context.WithCancel(ctx)
	in := effect.Input{
		Key: w.key, Desired: plan.Allocated(&w.in), Actual: plan.Actual(&w.in), Unsized: plan.ResizePending(&w.in),
		Successor: w.in.Successor, Leaving: w.in.Previous, Supply: w.supply, NextSupply: w.nextSupply, Observed: w.in.Observed, Node: w.render,
		UserIDs: w.userIDs, Pulling: w.sendPullStart, Permit: effect.NewPermit(),
	}
	w.flights[subject] = flight{action: a, since: time.Now(), cancel: cancel, permit: in.Permit, uid: uidOf(in.Desired)}
	w.running.Go(func() { w.results <- w.effects.Do(ctx, a, in) })
}
