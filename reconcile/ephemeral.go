package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/state"
)

// An ephemeralRequest is a request to a worker to add ephemeral containers.
type ephemeralRequest struct {
	uid        types.UID // UID of the pod
	containers []v1.EphemeralContainer
	dryRun     bool
	reply      chan<- error // receives the result; its capacity must be at least 1, so that the worker never blocks
}

// SetEphemeralContainers sets the ephemeral containers of the pod with this name and UID.
// containers must include the ephemeral containers that the pod already has. SetEphemeralContainers
// returns when the worker has written the containers to the journal. If dry is true, it only
// validates the containers. Its errors are Kubernetes API errors, except when ctx is done or podd
// is stopping.
func (r *Router) SetEphemeralContainers(ctx context.Context, key types.NamespacedName, uid types.UID, containers []v1.EphemeralContainer, dry bool) error {
	reply := make(chan error, 1)
	var workerDone <-chan struct{}
	err := r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.memory.Order.Desired == nil {
			return apierrors.NewNotFound(v1.Resource("pods"), key.Name)
		}
		if reason := r.o.Limits.Features.CheckEphemeral(e.memory.Order.Desired.WithEphemeral(containers).Object); reason != "" {
			return state.NewInvalidEphemeralError(key, reason)
		}
		workerDone = e.workerDone
		r.post(e, workerMessage{ephemeralRequests: []ephemeralRequest{{uid, containers, dry, reply}}})
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-workerDone:
		return state.NewReplacedError(key)
	case <-ctx.Done():
		return fmt.Errorf("adding ephemeral containers to %s: %w", r.shortName(key), ctx.Err())
	}
}

// addEphemeral adds ephemeral containers to the version in force and writes them to the journal. If
// a.dryRun is true, addEphemeral only validates the containers. If it cannot write the journal,
// addEphemeral adds no container and returns the error.
func (w *worker) addEphemeral(a ephemeralRequest) error {
	w.applyTransition(w.state.RecoverEphemeral(time.Now()))
	oldState := w.state
	newState, outputs, err := w.state.AddEphemeral(a.uid, a.containers, a.dryRun, time.Now())
	w.applyTransition(newState, outputs)
	if err != nil || !outputs.NeedsReport {
		return err
	}
	if err := w.state.WriteError(a.uid); err != nil {
		w.applyTransition(w.state.WithdrawEphemeral(oldState, time.Now()))
		return apierrors.NewInternalError(errors.Join(err, w.state.WriteError(a.uid)))
	}
	return nil
}
