package reconcile

import (
	"cmp"
	"context"
	"time"

	"podd/manifest/order"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// A pullStart is the message that an effect sends to its worker when the pull of an image begins.
type pullStart struct {
	subject, image string
	event          event.Event
}

// sendPullStart informs the worker that action a begins to pull a.Image, the image of the container or
// of an image volume. It blocks until the worker has received the message or ctx is done. Effects call
// it.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- &pullStart{a.Subject(), a.Image, e}:
	case <-ctx.Done():
	}
}

// applyPullStart records the start of a pull. The action of the pull is still in progress, because
// the effect waits until the worker has received the message f.
func (w *worker) applyPullStart(f *pullStart) {
	w.events = append(w.events, f.event)
	action := w.actions[f.subject]
	action.pullImage, action.pullStart = f.image, time.Now()
}

// pulls returns the image pulls in progress, sorted by container name.
func (w *worker) pulls() []state.PullInProgress {
	var pulls []state.PullInProgress
	for _, action := range w.actions {
		if a, ok := action.action.(plan.EnsureImage); ok && !action.pullStart.IsZero() {
			pulls = append(pulls, state.PullInProgress{Container: a.Container, Image: action.pullImage, Since: action.pullStart})
		}
	}
	order.Slice(pulls, func(a, b state.PullInProgress) int { return cmp.Compare(a.Container, b.Container) })
	return pulls
}
