package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
)

// call runs f on the router's goroutine.
func (r *Router) call(ctx context.Context, f func() error) error {
	a := ask{f, make(chan error, 1)}
	select {
	case r.asks <- a:
		return <-a.reply
	case <-r.ended:
		return errors.New("asking the router: podd is stopping")
	case <-ctx.Done():
		return fmt.Errorf("asking the router: %w", ctx.Err())
	}
}

// Ping returns nil once the router has taken a turn.
func (r *Router) Ping(ctx context.Context) error { return r.call(ctx, func() error { return nil }) }

// Restart has a pod's running containers started again, or the named one.
func (r *Router) Restart(ctx context.Context, key types.NamespacedName, container string) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.order.desired == nil {
			return fmt.Errorf("restarting %s: there is no such pod", key)
		}
		if e.report != nil && e.rests() {
			return fmt.Errorf("restarting %s: it has run to its end; an edit of its manifest runs it anew", r.short(key))
		}
		if e.report != nil && e.report.ephemeral(container) {
			return fmt.Errorf("restarting %s: %s is an ephemeral container, which runs once; add another one", r.short(key), container)
		}
		o := e.order
		o.seen, o.pod, o.restart = false, nil, []string{container}
		r.post(e, o)
		return nil
	})
}

// Evict ends the version of a pod that has this UID for good: it is Failed
// until it is edited. A pod that is not wanted any more needs none.
func (r *Router) Evict(ctx context.Context, key types.NamespacedName, evict plan.Evict) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e == nil || e.order.desired == nil {
			return nil
		}
		o := e.order
		o.seen, o.pod, o.evict = false, nil, &evict
		r.post(e, o)
		return nil
	})
}

// Delete has what runs of a pod of this UID end with another grace than its own,
// now if it is being ended and else once its manifest is gone. No UID means what is
// being ended, when podd does not know its manifest.
func (r *Router) Delete(ctx context.Context, key types.NamespacedName, uid types.UID, grace time.Duration) error {
	return r.call(ctx, func() error {
		e := r.entries[key]
		if e != nil && uid == "" && r.wanted(key) == nil && e.report != nil && len(e.report.UIDs) > 0 {
			uid = e.report.UIDs[0]
		}
		if e != nil {
			e.deletes = &plan.Delete{UID: uid, Grace: grace, At: time.Now()}
			r.orderAll()
		}
		return nil
	})
}

// Spare takes a Delete of a pod of this UID back, whose manifest stays.
func (r *Router) Spare(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	return r.call(ctx, func() error {
		if e := r.entries[key]; e != nil && e.deletes != nil && e.deletes.UID == uid {
			e.deletes = nil
			r.orderAll()
		}
		return nil
	})
}

// Disk is what the machine has of ephemeral storage from now on, and what of it is
// for pods, in bytes; 0 is unknown. Those that found no room and may have it now
// are asked again, and all once it is more than a tenth from what they were told.
func (r *Router) Disk(ctx context.Context, capacity, allocatable int64) error {
	return r.call(ctx, func() error {
		amounts := plan.Amounts{}
		maps.Copy(amounts, r.o.Limits.Amounts)
		delete(amounts, v1.ResourceEphemeralStorage)
		if allocatable > 0 {
			amounts[v1.ResourceEphemeralStorage] = allocatable
		}
		r.o.Limits.Amounts = amounts
		if nearly(capacity, r.render.Capacity.EphemeralStorage) && nearly(allocatable, r.render.Allocatable.EphemeralStorage) {
			r.orderOther()
			return nil
		}
		node := *r.render
		node.Capacity.EphemeralStorage, node.Allocatable.EphemeralStorage = capacity, allocatable
		r.render, r.dirty = &node, true
		r.orderAll()
		return nil
	})
}

// Renew publishes again, for who shows more of the node than the router knows.
func (r *Router) Renew(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.dirty = true
		return nil
	})
}

// nearly makes nothing of a tenth: a file system that shares its space with others
// has another size at every look.
func nearly(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 }

// Down ends every pod with its own grace and returns when none is left, or
// when ctx is done. No pod is started any more.
func (r *Router) Down(ctx context.Context) error {
	done := make(chan error, 1)
	err := r.call(ctx, func() error {
		r.down, r.dirty = true, true
		r.downed = append(r.downed, done)
		r.orderAll()
		r.tellDown()
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, done, "ending every pod")
}

// await returns what comes of doing something to all pods, unless podd or ctx ends.
func (r *Router) await(ctx context.Context, done <-chan error, doing string) error {
	select {
	case err := <-done:
		return err
	case <-r.ended:
		return errors.New(doing + ": podd is stopping; they run on")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Hurry ends without grace whatever is being ended, and all that will be.
func (r *Router) Hurry(ctx context.Context) error {
	return r.call(ctx, func() error {
		r.hurry = true
		r.orderAll()
		return nil
	})
}
