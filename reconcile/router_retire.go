package reconcile

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// retire ends a worker that has nothing left to do.
func (r *Router) retire(key types.NamespacedName, e *entry) {
	e.cancel()
	<-e.ended
	r.markRetired(key, e)
	delete(r.entries, key)
	delete(r.changed, key)
	r.endRemoval(key, nil)
	r.removed = append(r.removed, key)
	r.reservationsChanged = true
	r.finishDown()
}

// markRetired records when the last effect of key ended, so that an older snapshot does not
// recreate its worker. Foreign sandboxes of that name stay known.
func (r *Router) markRetired(key types.NamespacedName, e *entry) {
	r.retiredAt[key] = e.worker.state.Barrier
	r.observed = maps.Clone(r.observed)
	delete(r.observed, key)
	if len(e.report.Observed) > 0 {
		r.observed[key] = &runtime.Pod{Key: key, Incarnations: e.report.Observed}
	}
}

// finishDown returns from all calls of Down once no pod is left.
func (r *Router) finishDown() {
	if !r.down || !r.hasSnapshot || len(r.entries) > 0 {
		return
	}
	for _, c := range r.downWaiters {
		c <- nil
	}
	r.downWaiters = nil
}
