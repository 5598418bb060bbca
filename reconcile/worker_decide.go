package reconcile

import (
	"context"
	"reflect"
	"slices"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// decide plans until the plan stands, starts what it names, and returns when
// to plan again. Without news since the last time, a decision that is the same
// but for attempts of probes is told to nobody: a hundred pods are probed
// without a status being made.
func (w *worker) decide(ctx context.Context, news bool) time.Time {
	now := time.Now()
	if w.note(now) && runsToEnd(w.in.Desired) {
		w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
	}
	w.noteTaken()
	w.forgetStopped()
	w.in.Now = now
	w.in.History.Allocated = w.in.AllocatedSizes()
	w.in.InFlight = w.inFlight()
	d := plan.Next(w.in)
	news = news || d.Succeed || d.Finished != nil || d.Stopping != nil
	if d.Succeed {
		w.begin(w.in.Successor)
		w.look()
		d = plan.Next(w.in)
	}
	if d.Resume {
		w.resume()
		news, d = true, plan.Next(w.in)
	}
	err := w.commit(d)
	if err == nil {
		w.events = append(w.events, event.Decided(w.decision(d))...)
	} else {
		// Without the memory of its end the pod might run again: hold still.
		if err.Error() != w.told.Why && w.in.Desired != nil {
			w.events = append(w.events, event.On(w.in.Desired, now).Warning("FailedSync", "", err.Error()))
		}
		d.Actions = slices.DeleteFunc(d.Actions, func(a plan.Action) bool { return w.flights[a.Subject()].action == nil })
		d.Problem, d.Why = true, err.Error()
		d.Wake = now.Add(plan.RetryDelay(1))
	}
	w.cancelUnnamed(d)
	for _, a := range d.Actions {
		w.start(ctx, a)
	}
	if at := w.in.History.Volumes.Until; at.After(now) && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake = at
	}
	next := d.Next()
	if d = d.Told(); news || !reflect.DeepEqual(d, w.told) {
		w.tell(d)
	} else if len(w.events) > 0 {
		w.report(Report{Key: w.key, worker: w, seq: w.seq, events: w.events, quiet: true})
		w.events = nil
	}
	return next
}

// tell logs and reports a decision.
func (w *worker) tell(d plan.Decision) {
	w.told = d
	w.logDecision(d)
	w.logResize()
	r := w.reportOf(d)
	r.events, w.events = w.events, nil
	w.logOutcome(d, r.Pod)
	w.report(r)
}

func (w *worker) inFlight() map[string]plan.Action {
	out := make(map[string]plan.Action, len(w.flights))
	for subject, fl := range w.flights {
		out[subject] = fl.action
	}
	return out
}

// cancelUnnamed gives up what the decision no longer asks for.
func (w *worker) cancelUnnamed(d plan.Decision) {
	for _, fl := range w.flights {
		if plan.Cancellable(fl.action) && !named(d.Actions, fl.action) {
			fl.cancel()
		}
	}
}

func named(actions []plan.Action, a plan.Action) bool {
	return slices.ContainsFunc(actions, func(b plan.Action) bool { return plan.SameUndertaking(a, b) })
}

// start begins an action unless one of its subject is under way.
func (w *worker) start(ctx context.Context, a plan.Action) {
	subject := a.Subject()
	if _, busy := w.flights[subject]; busy {
		return
	}
	if _, ok := a.(plan.PrepareVolumes); ok {
		w.setDir(plan.Dir{UID: w.in.Desired.UID, Hash: w.in.Desired.Hash, Volumes: true})
		if err := w.remember(w.in.Desired.UID, w.in.Desired.Hash, false); err != nil {
			w.volumesFailed(err)
			return
		}
	}
	if stop, ok := a.(plan.StopContainer); ok && stop.Again {
		w.container(stop.Container, func(h *plan.ContainerHistory) { h.RestartID = stop.ID })
	}
	if a, ok := a.(plan.StartContainer); ok && a.PostStart {
		w.owe(a.Container, plan.Hook{Attempt: a.Attempt, Owed: true})
	}
	w.doubt(a)
	ctx, cancel := context.WithCancel(ctx)
	w.flights[subject] = flight{action: a, since: time.Now(), cancel: cancel}
	s := scene{
		key: w.key, desired: plan.Allocated(&w.in), actual: plan.Actual(&w.in), unsized: plan.Unsized(&w.in),
		successor: w.in.Successor, leaving: w.in.Leaving, supply: w.supply, nextSupply: w.nextSupply, observed: w.in.Observed, node: w.render,
		userIDs: w.userIDs, pulling: w.hear,
	}
	w.running.Go(func() { w.facts <- w.effects.do(ctx, a, s) })
}
