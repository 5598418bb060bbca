package reconcile

import (
	"cmp"
	"slices"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// A Pull is an image that is being pulled, or is queued for that. The progress is not
// known: CRI's PullImage reports nothing until it ends, and the size of a runtime's file
// system is that of all images.
type Pull struct {
	Container, Image string
	Since            time.Time
}

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
func (w *worker) pulls() []Pull {
	var all []Pull
	for _, fl := range w.flights {
		if a, ok := fl.action.(plan.EnsureImage); ok && !fl.pulling.IsZero() {
			all = append(all, Pull{a.Container, a.Image, fl.pulling})
		}
	}
	slices.SortFunc(all, func(a, b Pull) int { return cmp.Compare(a.Container, b.Container) })
	return all
}
