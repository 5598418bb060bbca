package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/admission"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// call runs f on the router's goroutine and returns its error.
func (r *Router) call(ctx context.Context, f func() error) error {
	a := request{f, make(chan error, 1)}
	select {
	case r.requests <- a:
		return <-a.reply
	case <-r.ended:
		return errors.New("sending a request to the router: podd is stopping")
	case <-ctx.Done():
		return fmt.Errorf("sending a request to the router: %w", ctx.Err())
	}
}

// Ping returns nil once the router's goroutine has handled the call.
func (r *Router) Ping(ctx context.Context) error { return r.call(ctx, func() error { return nil }) }

// Restart restarts a running container of a pod, or all of them if container is "".
func (r *Router) Restart(ctx context.Context, key types.NamespacedName, container string) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.memory.Order.Desired == nil {
			return fmt.Errorf("restarting %s: pod not found", key)
		}
		if e.report != nil && e.isFinished() {
			return fmt.Errorf("restarting %s: the pod has finished; edit its manifest to run it again", r.shortName(key))
		}
		if e.report != nil && e.report.HasEphemeral(container) {
			return fmt.Errorf("restarting %s: %s is an ephemeral container, which runs once; add another one", r.shortName(key), container)
		}
		r.request(e, state.Requests{Restart: []string{container}})
		return nil
	})
}

// Evict stops the version of a pod that evict names, for good: it is Failed until it is
// edited. Evict does nothing if another version has replaced it, or if the pod is not
// desired any more.
func (r *Router) Evict(ctx context.Context, key types.NamespacedName, evict plan.Eviction) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.memory.Order.Desired == nil {
			return nil
		}
		r.request(e, state.Requests{Evict: &evict})
		return nil
	})
}

// Delete stops the pod with this UID with another grace than its own: now if it is being
// stopped already, otherwise once its manifest is gone. An empty UID means the pod that is
// being stopped, if podd does not know its manifest. A grace that is not shorter than one
// requested before changes nothing.
func (r *Router) Delete(ctx context.Context, key types.NamespacedName, uid types.UID, grace time.Duration) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e != nil && uid == "" && r.desiredPod(key) == nil && e.report != nil && len(e.report.UIDs) > 0 {
			uid = e.report.UIDs[0]
		}
		if e == nil || e.memory.Deletion != nil && e.memory.Deletion.UID == uid && e.memory.Deletion.Grace <= grace {
			return nil
		}
		e.memory.Deletion = &plan.Delete{UID: uid, Grace: grace, At: time.Now()}
		r.orderAll()
		return nil
	})
}

// CancelDelete revokes a Delete of the pod with this UID. Its manifest stays.
func (r *Router) CancelDelete(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	return r.call(ctx, func() error {
		if e := r.entries[key]; e != nil && e.memory.Deletion != nil && e.memory.Deletion.UID == uid {
			e.memory.Deletion = nil
			r.orderAll()
		}
		return nil
	})
}

// Disk sets the ephemeral storage of the node and the part of it for pods, in bytes; 0
// means unknown. Pods that were rejected for lack of storage and fit now are admitted. All
// pods get new orders if a value differs by more than a tenth from the one that they have.
func (r *Router) Disk(ctx context.Context, capacity, allocatable int64) error {
	return r.call(ctx, func() error {
		amounts := admission.Amounts{}
		maps.Copy(amounts, r.o.Limits.Amounts)
		delete(amounts, v1.ResourceEphemeralStorage)
		if allocatable > 0 {
			amounts[v1.ResourceEphemeralStorage] = allocatable
		}
		r.o.Limits.Amounts = amounts
		if isNear(capacity, r.render.Capacity.EphemeralStorage) && isNear(allocatable, r.render.Allocatable.EphemeralStorage) {
			r.orderChangedAnswers()
			return nil
		}
		node := *r.render
		node.Capacity.EphemeralStorage, node.Allocatable.EphemeralStorage = capacity, allocatable
		r.render, r.dirty = &node, true
		r.orderAll()
		return nil
	})
}

// Republish publishes again, for a caller that shows facts about the node that the router does
// not have.
func (r *Router) Republish(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.dirty = true
		return nil
	})
}

// isNear reports whether a and b differ by at most a tenth. The size of a file system that
// shares its space with others differs at every poll.
func isNear(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 }

// Down stops every pod with its own grace and returns when none is left, or when ctx is
// done. No pod is started any more.
func (r *Router) Down(ctx context.Context) error {
	done := make(chan error, 1)
	err := r.call(ctx, func() error {
		r.down, r.dirty = true, true
		r.downWaiters = append(r.downWaiters, done)
		r.orderAll()
		r.finishDown()
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, done, "stopping every pod")
}

// await returns the result of an operation on pods, or an error if podd stops or ctx is
// done first.
func (r *Router) await(ctx context.Context, done <-chan error, doing string) error {
	select {
	case err := <-done:
		return err
	case <-r.ended:
		return errors.New(doing + ": podd is stopping; the pods keep running")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ForceStop stops all pods that are being stopped, now or later, without grace.
func (r *Router) ForceStop(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.forceStop = true
		r.orderAll()
		return nil
	})
}
