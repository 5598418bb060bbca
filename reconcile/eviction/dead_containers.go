package eviction

import (
	"context"
	"fmt"

	"podd/reconcile/state"
	"podd/runtime"
)

// DeadContainers removes the containers of pods that have finished, and with them their writable
// layers. The logs and the statuses of the containers are kept. It implements Reclaimer.
type DeadContainers struct {
	Reports func() []*state.Report // returns the current pods
	Runtime containerRemover
}

// containerRemover is the part of *cri.Client that DeadContainers uses.
type containerRemover interface {
	RemoveContainer(ctx context.Context, id string) error
}

// Reclaim removes the containers. It returns the first error, and then removes no further
// container, because the runtime may not respond.
func (d DeadContainers) Reclaim(ctx context.Context) error {
	for _, r := range d.Reports() {
		if !r.HasRemovableContainers() {
			continue
		}
		for i := range r.Observed {
			if r.Observed[i].Foreign {
				continue
			}
			for _, c := range r.Observed[i].Containers {
				if c.State != runtime.Exited {
					continue
				}
				if err := d.Runtime.RemoveContainer(ctx, c.ID); err != nil {
					return fmt.Errorf("removing the dead container %s of pod %s: %w", c.Name, r.Key, err)
				}
			}
		}
	}
	return nil
}
