package reconcile

import (
	"maps"
	"slices"
	"time"

	"podd/reconcile/plan"
	"podd/runtime"
)

// recordObserved updates the history from the newest observation of Desired's containers:
// attempt numbers in use, and exits with the time at which they were observed. It reports
// whether a container has exited.
func (w *worker) recordObserved(now time.Time) (exited bool) {
	w.recoverEphemeral()
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		w.recordUnknownExits(inc, now)
		if !plan.Runs(w.in.Desired, inc) {
			continue
		}
		for j := range inc.Containers {
			exited = w.recordContainer(&inc.Containers[j], now) || exited
		}
	}
	w.forgetRemoved()
	exited, w.exitsLost = exited || w.exitsLost, false
	return exited
}

// recordLost records the ends of containers that are missing in an observation.
func (w *worker) recordLost(seen []runtime.Incarnation) {
	runs := func(inc *runtime.Incarnation) bool { return plan.Runs(w.in.Desired, inc) }
	lost := lostEnds(runs, w.in.Observed, seen, time.Now())
	for name, e := range lost {
		w.container(name, func(h *plan.ContainerHistory) {
			if h.LastExit == nil || h.LastExit.Attempt <= e.Attempt {
				h.LastExit = &e
			}
		})
	}
	w.exitsLost = w.exitsLost || len(lost) > 0
}

// forgetRemoved forgets the history of sandboxes, containers and directories that no longer
// exist.
func (w *worker) forgetRemoved() {
	there := map[string]bool{}
	for _, d := range w.in.Dirs {
		there["dir/"+string(d.UID)] = true
	}
	for i := range w.in.Observed {
		id := w.in.Observed[i].ID
		there[id], there["sandbox/"+id] = true, true
		for _, c := range w.in.Observed[i].Containers {
			for _, subject := range []string{"", "stop/", "remove/", "preStop/", "postStart/"} {
				there[subject+c.ID] = true
			}
		}
	}
	if !isRunning(w.in.Observed, w.in.Previous) && !awaitsExit(w.in.Observed, w.in.Previous) {
		w.in.Previous = nil
	}
	if !slices.ContainsFunc(w.in.Observed, func(inc runtime.Incarnation) bool { return !plan.Runs(w.in.Desired, &inc) }) {
		w.replaced = nil
	}
	h := &w.in.History
	h.SeenExit, h.Released, h.Cleanup = filterKeys(h.SeenExit, there), filterKeys(h.Released, there), filterKeys(h.Cleanup, there)
	if w.hasObserved { // before that, it is not known which of them exist
		h.Probed, h.Terminations, h.TerminationMessages = filterKeys(h.Probed, there), filterKeys(h.Terminations, there), filterKeys(h.TerminationMessages, there)
		h.Sizes = filterKeys(h.Sizes, there)
	}
}

// filterKeys returns m without the keys that are not in there. If all are, it returns m
// itself.
func filterKeys[V any](m map[string]V, there map[string]bool) map[string]V {
	kept := m
	for k := range m {
		if !there[k] {
			kept = maps.Clone(kept)
			delete(kept, k)
		}
	}
	return kept
}

// recordUnknownExits records when containers with an unknown exit code were first observed
// to have exited.
func (w *worker) recordUnknownExits(inc *runtime.Incarnation, now time.Time) {
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if _, seen := w.in.History.SeenExit[c.ID]; !seen && c.State == runtime.ExitUnknown && !inc.Foreign {
			w.in.History.SeenExit = with(w.in.History.SeenExit, c.ID, now)
		}
	}
}

// recordContainer updates the history of a container. It reports whether its exit is new.
func (w *worker) recordContainer(c *runtime.Container, now time.Time) (exited bool) {
	_, starting := w.flights[plan.StartContainer{Container: c.Name}.Subject()]
	w.recordRunning(c, !starting, now)
	w.recordHookStart(c, now)
	h := w.in.History.Containers[c.Name]
	if (c.Attempt >= h.Attempt || c.Restarts() >= h.Restarts) && c.State != runtime.Created {
		w.container(c.Name, func(h *plan.ContainerHistory) {
			h.Attempt, h.Restarts = max(h.Attempt, c.Attempt+1), max(h.Restarts, c.Restarts()+1)
		})
	}
	if c.State != runtime.Exited || c.CutShort() {
		return false
	}
	if _, seen := w.in.History.SeenExit[c.ID]; !seen {
		w.in.History.SeenExit = with(w.in.History.SeenExit, c.ID, now)
	}
	said, told := w.in.History.TerminationMessages[c.ID]
	if e := h.LastExit; e != nil && (e.Attempt > c.Attempt || e.ID == c.ID && e.Code == c.ExitCode && (e.MessageRead || !told)) {
		return false
	}
	w.container(c.Name, func(h *plan.ContainerHistory) {
		h.LastExit = &plan.Exit{
			ID: c.ID, Code: c.ExitCode, Reason: c.Reason, Message: c.Message, Why: w.in.History.Terminations[c.ID].Why, TerminationMessage: said, MessageRead: told,
			StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt, Skipped: c.Attempt - c.Restarts(),
		}
	})
	return true
}
