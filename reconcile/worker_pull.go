package reconcile

import (
	"cmp"
	"slices"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// Pull is an image that is being fetched, or waits for its turn to be. How much of
// it is there nobody knows: CRI's PullImage says nothing until it ends, and a
// runtime's file systems are those of all images.
type Pull struct {
	Container, Image string
	Since            time.Time
}

// fetch is that the image of a flight begins to be fetched.
type fetch struct {
	subject string
	event   event.Event
}

// fetches remembers it. The flight is still there: its effect waits to be heard.
func (w *worker) fetches(f fetch) {
	w.events = append(w.events, f.event)
	fl := w.flights[f.subject]
	fl.pulling = time.Now()
	w.flights[f.subject] = fl
}

// pulls are the images on their way.
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
