package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/manifest/order"
	"podd/reconcile/gc"
	"podd/runtime"
)

// maxFailures is the maximum number of removals that fail in one round. A removal that fails may take
// long, and the containers that remain are tried in the next rounds.
const maxFailures = 10

// A remover removes containers. Its zero value is ready for use. Only one goroutine may use it at a time.
type remover struct {
	// failures contains the containers whose removal has failed, by ID. A container whose removal has
	// failed later has a higher number.
	failures    map[string]int
	lastFailure int // the highest number in failures so far
}

// removeAll removes containers. It continues after an error, because a single container that cannot be
// removed must not prevent the removal of all others. It returns after maxFailures errors, and at once if
// the runtime does not respond or ctx is done. The containers whose removal has failed before are removed
// last, in the order of their failures, so that each container is tried after some calls. removeAll
// returns all errors.
func (r *remover) removeAll(ctx context.Context, client Runtime, containers []gc.DeadContainer) error {
	failures := map[string]int{} // omits containers that no longer exist
	for _, c := range containers {
		if number := r.failures[c.ID]; number > 0 {
			failures[c.ID] = number
		}
	}
	r.failures = failures
	containers = slices.Clone(containers)
	order.Stable(containers, func(a, b gc.DeadContainer) int { return cmp.Compare(failures[a.ID], failures[b.ID]) })
	var errs []error
	for _, c := range containers {
		err := client.RemoveContainer(ctx, c.ID)
		if err == nil {
			continue
		}
		r.recordFailure(c.ID, err)
		errs = append(errs, fmt.Errorf("removing dead container %s of the pod with UID %s: %w", c.Name, c.PodUID, err))
		if ctx.Err() != nil || isUnresponsive(err) || len(errs) == maxFailures {
			break
		}
	}
	return errors.Join(errs...)
}

// recordFailure records that the removal of the container with an ID has failed with err. It records
// nothing if the runtime was unavailable, because then the removal of every container fails.
func (r *remover) recordFailure(id string, err error) {
	if errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	r.lastFailure++
	r.failures[id] = r.lastFailure
}

// isUnresponsive reports whether err means that the runtime has not responded to a call.
func isUnresponsive(err error) bool {
	return errors.Is(err, runtime.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
