package reconcile

import (
	"context"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// sendPullStart informs the worker that the pull of the image of action a begins. It blocks until
// the worker has received the message or ctx is done. Effects call it.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- pullStart{a.Subject(), e}:
	case <-ctx.Done():
	}
}
