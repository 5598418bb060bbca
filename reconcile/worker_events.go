package reconcile

import (
	"context"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// sendPullStart informs the worker that action a begins to pull a.Image, the image of the container or
// of an image volume. It blocks until the worker has received the message or ctx is done. Effects call
// it.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- &pullStart{a.Subject(), a.Image, e}:
	case <-ctx.Done():
	}
}
