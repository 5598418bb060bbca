package eviction

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/state"
)

// A ReportCache contains the last report of each pod. It is safe for concurrent use.
type ReportCache struct {
	mu        sync.Mutex // guards the following fields
	pods      map[types.NamespacedName]*state.Report
	hasLoaded bool // whether all pods that exist are known
}

// NewReportCache returns an empty cache.
func NewReportCache() *ReportCache {
	return &ReportCache{pods: map[types.NamespacedName]*state.Report{}}
}

// Apply stores the reports of a change, and deletes the reports of removed pods.
func (r *ReportCache) Apply(c reconcile.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hasLoaded = r.hasLoaded || !c.Starting
	for _, report := range c.Removed {
		delete(r.pods, report.Key)
	}
	for _, report := range c.Reports {
		if report.Pod != nil {
			r.pods[report.Key] = report
		}
	}
}

// All returns the last report of each pod in no particular order.
func (r *ReportCache) All() []*state.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.pods))
}

// IsStarting reports whether All may omit pods that exist on the node, because podd has just started.
func (r *ReportCache) IsStarting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.hasLoaded
}
