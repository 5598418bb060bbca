package containers

import (
	"context"
	"slices"

	"podd/reconcile/state"
)

// Finished removes the containers of pods that have finished, and with them their writable layers.
// The logs and the statuses of the containers are kept. The eviction uses it to make space before it
// evicts pods.
type Finished struct {
	Reports func() []*state.Report // returns the current pods
	Runtime Runtime
}

// Reclaim removes the containers. It returns the first error, and then removes no further
// container, because the runtime may not respond.
func (f Finished) Reclaim(ctx context.Context) error {
	finished := slices.DeleteFunc(slices.Clone(f.Reports()), func(r *state.Report) bool { return !r.HasRemovableContainers() })
	return removeAll(ctx, f.Runtime, exitedContainers(finished))
}
