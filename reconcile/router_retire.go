package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// retire stops the worker of a name after its pod was removed, and waits until the worker has
// returned.
func (r *Router) retire(key types.NamespacedName, e *workerEntry) {
	e.cancel()
	<-e.workerDone
	r.markRetired(key, e)
	delete(r.entries, key)
	delete(r.unpublished.pods, key)
	r.endRemoval(key, nil)
	r.unpublished.removed = append(r.unpublished.removed, e.report)
	r.reservationsChanged = true
	r.endStopAllCalls()
}

// markRetired records when the last effect of the retired name ended, so that an older snapshot
// does not start the worker of the name again. Foreign sandboxes of the name remain in r.observed.
func (r *Router) markRetired(key types.NamespacedName, e *workerEntry) {
	r.retiredAt[key] = e.worker.state.Barrier
	r.observed = maps.Clone(r.observed)
	delete(r.observed, key)
	if len(e.report.Observed) > 0 {
		r.observed[key] = &runtime.Pod{Key: key, Incarnations: e.report.Observed}
	}
}

// endStopAllCalls ends the waiting calls of StopAll if every pod has stopped; otherwise it does
// nothing. If a pod directory could not be removed, the calls return an error.
func (r *Router) endStopAllCalls() {
	if r.stopAll.reason == "" || !r.hasFullSnapshot {
		return
	}
	var onDisk []string
	for key, e := range r.entries {
		if e.report == nil || !e.report.OnDiskOnly {
			return
		}
		onDisk = append(onDisk, r.shortName(key))
	}
	var err error
	if len(onDisk) > 0 {
		slices.Sort(onDisk)
		err = fmt.Errorf("every pod has stopped, but removing the data on disk of %s failed; podd retries while it runs", strings.Join(onDisk, ", "))
	}
	for _, c := range r.stopAll.waiters {
		c <- err
	}
	r.stopAll.waiters = nil
}
