package reconcile

import (
	"context"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// sendPullStart tells the worker that the image of an action in progress is being pulled.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- pullStart{a.Subject(), e}:
	case <-ctx.Done():
	}
}
