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
	r.bury(key, e)
	delete(r.entries, key)
	delete(r.changed, key)
	r.gone = append(r.gone, key)
	r.claimed = true
	r.tellDown()
}

// bury remembers of a name that is gone that it is, newer than any observation
// so far; what others have of that name stays known.
func (r *Router) bury(key types.NamespacedName, e *entry) {
	r.buried[key] = e.worker.effectEnd
	r.last = maps.Clone(r.last)
	delete(r.last, key)
	if len(e.report.Observed) > 0 {
		r.last = with(r.last, key, &runtime.Pod{Key: key, Incarnations: e.report.Observed})
	}
}

func (r *Router) tellDown() {
	if !r.down || !r.seen || len(r.entries) > 0 {
		return
	}
	for _, c := range r.downed {
		c <- nil
	}
	r.downed = nil
}
