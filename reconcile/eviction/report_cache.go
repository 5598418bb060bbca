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
	mu   sync.Mutex // guards pods
	pods map[types.NamespacedName]*state.Report
}

// NewReportCache returns an empty cache.
func NewReportCache() *ReportCache {
	return &ReportCache{pods: map[types.NamespacedName]*state.Report{}}
}

// Apply stores the reports of a change, and deletes the reports of removed pods.
func (r *ReportCache) Apply(c reconcile.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
