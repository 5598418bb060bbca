package reconcile

import (
	"cmp"
	"slices"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// pullStart reports that the pull of an action's image begins.
type pullStart struct {
	subject string
	event   event.Event
}

// applyPullStart records it. The action is still in progress, because its effect waits
// until the worker has received this.
func (w *worker) applyPullStart(f pullStart) {
	w.events = append(w.events, f.event)
	fl := w.flights[f.subject]
	fl.pulling = time.Now()
	w.flights[f.subject] = fl
}

// pulls returns the pulls in progress.
func (w *worker) pulls() []state.Pull {
	var all []state.Pull
	for _, fl := range w.flights {
		if a, ok := fl.action.(plan.EnsureImage); ok && !fl.pulling.IsZero() {
			all = append(all, state.Pull{Container: a.Container, Image: a.Image, Since: fl.pulling})
		}
	}
	slices.SortFunc(all, func(a, b state.Pull) int { return cmp.Compare(a.Container, b.Container) })
	return all
}
