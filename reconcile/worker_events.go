package reconcile

import (
	"context"

	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// sendPullStart reports to the worker that the pull of an action's image begins. It blocks
// until the worker has received that or ctx is done. Effects call it.
func (w *worker) sendPullStart(ctx context.Context, a plan.EnsureImage, e event.Event) {
	select {
	case w.pullStarts <- pullStart{a.Subject(), e}:
	case <-ctx.Done():
	}
}
