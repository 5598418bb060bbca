package reconcile

import (
	"maps"
	"time"

	"podd/reconcile/plan"
	"podd/runtime"
)

// note takes what the newest observation says of Desired's containers into the
// history: attempt numbers in use, and exits with the moment they were seen.
func (w *worker) note(now time.Time) (exited bool) {
	w.meet()
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		if !plan.Runs(w.in.Desired, inc) {
			continue
		}
		for j := range inc.Containers {
			exited = w.noteContainer(&inc.Containers[j], now) || exited
		}
	}
	w.forgetGone()
	return exited
}

// forgetGone drops what is remembered of sandboxes, containers and directories
// that are not there any more.
func (w *worker) forgetGone() {
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
	if !listed(w.in.Observed, w.in.Leaving) {
		w.in.Leaving = nil
	}
	h := &w.in.History
	h.SeenExit, h.Released, h.Cleanup = only(h.SeenExit, there), only(h.Released, there), only(h.Cleanup, there)
	if w.looked { // before, nobody knows which of the remembered ones are
		h.Probed, h.Endings, h.Said = only(h.Probed, there), only(h.Endings, there), only(h.Said, there)
		h.Sizes = only(h.Sizes, there)
	}
}

// only returns m without what is not there; m itself when that is nothing.
func only[V any](m map[string]V, there map[string]bool) map[string]V {
	kept := m
	for k := range m {
		if !there[k] {
			kept = maps.Clone(kept)
			delete(kept, k)
		}
	}
	return kept
}

func (w *worker) noteContainer(c *runtime.Container, now time.Time) (exited bool) {
	_, starting := w.flights[plan.StartContainer{Container: c.Name}.Subject()]
	w.noteRunning(c, !starting, now)
	w.noteHook(c, now)
	h := w.in.History.Containers[c.Name]
	if c.Attempt+1 > h.Attempt && c.State != runtime.Created {
		w.container(c.Name, func(h *plan.ContainerHistory) { h.Attempt = c.Attempt + 1 })
	}
	if c.State != runtime.Exited || c.CutShort() {
		return false
	}
	if _, seen := w.in.History.SeenExit[c.ID]; !seen {
		w.in.History.SeenExit = with(w.in.History.SeenExit, c.ID, now)
	}
	said, told := w.in.History.Said[c.ID]
	if e := h.LastExit; e != nil && (e.Attempt > c.Attempt || e.ID == c.ID && e.Code == c.ExitCode && (e.Told || !told)) {
		return false
	}
	w.container(c.Name, func(h *plan.ContainerHistory) {
		h.LastExit = &plan.Exit{
			ID: c.ID, Code: c.ExitCode, Reason: c.Reason, Message: c.Message, Why: w.in.History.Endings[c.ID].Why, Said: said, Told: told,
			StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt,
		}
	})
	return true
}
