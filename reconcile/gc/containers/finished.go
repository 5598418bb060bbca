package containers

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/reconcile/gc/gctrace"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// Finished removes the containers of pods that have finished, and with them their writable layers.
// The logs and the statuses of the containers are kept. The eviction uses it to make space before it
// evicts pods, and then uses FinishedLogs if necessary. Only one goroutine may use a Finished at a time.
type Finished struct {
	Reports func() []*state.Report // returns the current pods
	Runtime Runtime
	Tracer  trace.Tracer // creates a span for each call of Reclaim; nil means that there are none

	remover remover
}

// Reclaim removes the containers. It returns the errors of remover.removeAll.
func (f *Finished) Reclaim(ctx context.Context) error {
	finished := slices.DeleteFunc(slices.Clone(f.Reports()), func(r *state.Report) bool { return !r.HasRemovableContainers() })
	return gctrace.Round(ctx, f.Tracer, gctrace.Containers, func(ctx context.Context) error {
		return f.remover.removeAll(ctx, f.Runtime, deadContainers(finished))
	})
}

// FinishedLogs removes the logs of pods that have finished. Reclaim must only be called while the node
// has the condition DiskPressure, so that no evicted pod starts again meanwhile.
type FinishedLogs struct {
	Reports func() []*state.Report // returns the current pods
	// Remove removes the logs of pods until ctx is done, and returns all errors.
	Remove func(ctx context.Context, uids sets.Set[types.UID]) error
}

// Reclaim removes the logs. It keeps the logs of pods that still run in a sandbox of another program.
func (f FinishedLogs) Reclaim(ctx context.Context) error {
	uids := sets.New[types.UID]()
	for _, r := range f.Reports() {
		if r.IsCleanedUp() && !slices.ContainsFunc(r.Observed, isLive) {
			uids.Insert(r.Version.UID)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	return f.Remove(ctx, uids)
}

func isLive(inc runtime.Incarnation) bool { return plan.IsLive(&inc) }
