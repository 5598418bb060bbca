package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/admission"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// call runs f on the router's goroutine and returns its error.
func (r *Router) call(ctx context.Context, f func() error) error {
	q := request{f, make(chan error, 1)}
	select {
	case r.requests <- q:
		return <-q.reply
	case <-r.runDone:
		return errors.New("sending a request to the router: podd is stopping")
	case <-ctx.Done():
		return fmt.Errorf("sending a request to the router: %w", ctx.Err())
	}
}

// Ping returns nil when the router's goroutine has responded.
func (r *Router) Ping(ctx context.Context) error { return r.call(ctx, func() error { return nil }) }

// Restart requests a restart of a running container of a pod, or of all its running
// containers if container is "". It does not wait for the restart.
func (r *Router) Restart(ctx context.Context, key types.NamespacedName, container string) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.memory.Order.Desired == nil {
			return fmt.Errorf("restarting %s: pod not found", key)
		}
		if e.report != nil && e.report.Finished.WaitsForRestart() {
			return fmt.Errorf("restarting %s: the pod was evicted and starts again without a request; podd why shows what it waits for", r.shortName(key))
		}
		if e.report != nil && e.isFinished() {
			return fmt.Errorf("restarting %s: the pod has finished; edit its manifest to run it again", r.shortName(key))
		}
		if e.report != nil && e.report.HasEphemeral(container) {
			return fmt.Errorf("restarting %s: %s is an ephemeral container, which runs once; add another one", r.shortName(key), container)
		}
		r.postRequests(e, state.Requests{ContainersToRestart: []string{container}})
		return nil
	})
}

// Evict requests the eviction of the version of a pod that eviction.UID and eviction.Hash identify.
// The pod is Failed until it starts again (plan.Eviction.Restarts) or its manifest is edited. Evict
// does nothing if another version has already replaced that version. If the pod is not desired any more
// and is being stopped, Evict limits its grace period, and eviction.Hash has no effect.
func (r *Router) Evict(ctx context.Context, key types.NamespacedName, eviction plan.Eviction) error {
	return r.call(ctx, func() error {
		switch e := r.entries[key]; {
		case e == nil:
		case e.memory.Order.Desired != nil:
			r.postRequests(e, state.Requests{Eviction: &eviction})
		case e.evictTerminating(&eviction, time.Now()):
			r.postOrders()
		}
		return nil
	})
}

// evictTerminating evicts the pod with the UID eviction.UID, which is not desired any more. It returns
// false if the pod is not on the node or an earlier call has already evicted it.
func (e *workerEntry) evictTerminating(eviction *plan.Eviction, now time.Time) bool {
	if e.report == nil || !slices.Contains(e.report.UIDs, eviction.UID) {
		return false
	}
	d := e.memory.Deletion
	if d == nil || d.UID != eviction.UID {
		d = plan.NewDeletion(nil, eviction.UID, plan.MaxGrace, now)
	}
	e.memory.Deletion = d.WithEviction(eviction, now)
	return e.memory.Deletion != d
}

// Delete replaces the grace period of the pod with this UID. If the pod is being stopped, the new
// grace period applies at once, otherwise when its manifest is removed. If uid is "" and no pod of
// this name is desired, Delete applies to the pod that is being stopped. Delete does nothing if an
// earlier call for the same UID has set a shorter or equal grace period.
func (r *Router) Delete(ctx context.Context, key types.NamespacedName, uid types.UID, grace time.Duration) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e != nil && uid == "" && r.desiredPod(key) == nil && e.report != nil && len(e.report.UIDs) > 0 {
			uid = e.report.UIDs[0]
		}
		if e == nil || e.memory.Deletion != nil && e.memory.Deletion.UID == uid && e.memory.Deletion.Grace <= grace {
			return nil
		}
		e.memory.Deletion = plan.NewDeletion(e.memory.Deletion, uid, grace, time.Now())
		r.postOrders()
		return nil
	})
}

// CancelDelete revokes a call of Delete for the pod with this UID. It must be called if the
// manifest of the pod is not removed after a call of Delete.
func (r *Router) CancelDelete(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	return r.call(ctx, func() error {
		if e := r.entries[key]; e != nil && e.memory.Deletion != nil && e.memory.Deletion.UID == uid {
			e.memory.Deletion = nil
			r.postOrders()
		}
		return nil
	})
}

// SetDiskCapacity sets the capacity of the node's ephemeral storage and the part that pods may use,
// in bytes; 0 means unknown. Pods that were rejected because of missing storage are admitted if
// they fit now. All workers get new orders if a value differs by more than a tenth from the value
// in their orders.
func (r *Router) SetDiskCapacity(ctx context.Context, capacity, allocatable int64) error {
	return r.call(ctx, func() error {
		amounts := admission.Amounts{}
		maps.Copy(amounts, r.o.Limits.Allocatable)
		delete(amounts, v1.ResourceEphemeralStorage)
		if allocatable > 0 {
			amounts[v1.ResourceEphemeralStorage] = allocatable
		}
		r.o.Limits.Allocatable = amounts
		if isNear(capacity, r.renderNode.Capacity.EphemeralStorage) && isNear(allocatable, r.renderNode.Allocatable.EphemeralStorage) {
			r.postChangedVerdicts()
			return nil
		}
		node := *r.renderNode
		node.Capacity.EphemeralStorage, node.Allocatable.EphemeralStorage = capacity, allocatable
		r.renderNode, r.unpublished.hasState = &node, true
		r.postOrders()
		return nil
	})
}

// SetPressure sets the pressure conditions of the node, on which the admission of pods depends.
// isKnown reports whether all resources of the node were observed; see Options.AwaitPressure.
func (r *Router) SetPressure(ctx context.Context, c pressure.Conditions, isKnown bool) error {
	return r.call(ctx, func() error {
		wasAwaited := r.isPressureAwaited()
		r.isPressureKnown = r.isPressureKnown || isKnown
		if r.o.Limits.Pressure != c || wasAwaited != r.isPressureAwaited() {
			r.o.Limits.Pressure = c
			r.postOrders()
		}
		return nil
	})
}

// maxPressureWait limits the time between the first snapshot and the start of pods if the pressure
// conditions are unknown, because a disk or the runtime may not respond.
const maxPressureWait = time.Second

// isPressureAwaited reports whether pods must wait because the pressure conditions are unknown. It is
// false before the first snapshot, because no worker starts a pod before that.
func (r *Router) isPressureAwaited() bool {
	return r.o.AwaitPressure && r.hasFullSnapshot && !r.isPressureKnown
}

// beginPressureWait starts the timeout of the wait for the pressure conditions. It is called after the
// first snapshot.
func (r *Router) beginPressureWait() {
	if r.isPressureAwaited() {
		r.pressureTimeout = time.After(maxPressureWait)
	}
}

// endPressureWait admits pods although no pressure conditions were set in time.
func (r *Router) endPressureWait() {
	if r.pressureTimeout = nil; !r.isPressureAwaited() {
		return
	}
	r.o.Log.Warn("observing the resources of the node timed out; starting pods without these observations", "waited", maxPressureWait)
	r.isPressureKnown = true
	r.postOrders()
}

// Republish publishes the current state again. It must be called if receivers of a Change also use
// other facts, and these facts have changed.
func (r *Router) Republish(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.unpublished.hasState = true
		return nil
	})
}

// isNear reports whether a and b differ by at most a tenth. Such a difference is ignored
// because the size of a file system that shares its space with other file systems differs
// at every poll.
func isNear(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 }

// StopAll stops every pod with its own grace period. It returns when all pods have stopped, or when
// ctx is done. No pod is started any more. StopAll returns an error if it could not remove a pod
// directory. reason is the reason for users, such as "podd down"; it must not be empty.
func (r *Router) StopAll(ctx context.Context, reason string) error {
	done := make(chan error, 1)
	err := r.call(ctx, func() error {
		r.stopAll.reason, r.unpublished.hasState = reason, true
		r.stopAll.waiters = append(r.stopAll.waiters, done)
		r.postOrders()
		r.endStopAllCalls()
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, done, "stopping every pod")
}

// await receives the result of an operation on pods from the channel done and returns it. It
// returns an error if podd stops or ctx is done before there is a result. operation describes the
// operation in the error.
func (r *Router) await(ctx context.Context, done <-chan error, operation string) error {
	select {
	case err := <-done:
		return err
	case <-r.runDone:
		return errors.New(operation + ": podd is stopping; the pods keep running")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ForceStop ends the grace period of all pods that are being stopped. Pods that are stopped
// later get no grace period.
func (r *Router) ForceStop(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.stopAll.force = true
		r.postOrders()
		return nil
	})
}
