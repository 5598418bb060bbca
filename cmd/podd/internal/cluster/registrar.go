package cluster

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
)

// A registrar publishes the CSI drivers of this node: the Node's annotation and labels,
// and the CSINode, which it always creates. An error of one driver does not affect the
// others. Drivers of an earlier podd are kept until they register again; those that
// registered here are removed when they unregister.
type registrar struct {
	ours map[string]bool // published by this podd, or attempted

	// Per connection:
	o     *Options
	c     *client
	uid   types.UID             // of the Node of the following fields
	made  bool                  // the CSINode exists
	seen  *storage.CSINode      // as last returned; nil: unknown
	known map[string]csi.Driver // published
}

// run syncs the drivers until ctx is done.
func (r *registrar) run(ctx context.Context, api *client, c *Cluster, say reporter) {
	r.o, r.c, r.uid = &c.o, api, ""
	if r.ours == nil {
		r.ours = map[string]bool{}
	}
	b := backoff{}
	for {
		var drivers []csi.Driver
		var otherDrivers <-chan struct{}
		if c.o.CSI != nil {
			drivers, otherDrivers = c.o.CSI.Registered()
		}
		nodes, otherNodes := c.nodes.get()
		var again <-chan time.Time
		if n := nodes.items[types.NamespacedName{Name: c.o.Node}]; n != nil {
			err := r.sync(ctx, n, drivers)
			say.report(ctx, ofCSINode, err)
			if err == nil {
				b = backoff{}
			} else {
				again = time.After(spread(b.upTo(maxCachedWait)))
			}
		}
		if again != nil {
			otherNodes = nil // the Node changes often, rarely in a way that makes a retry succeed
		}
		select {
		case <-otherDrivers:
		case <-otherNodes:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// sync makes one attempt.
func (r *registrar) sync(ctx context.Context, n *v1.Node, drivers []csi.Driver) error {
	if r.uid != n.UID {
		r.uid, r.made, r.seen, r.known = n.UID, false, nil, map[string]csi.Driver{}
	}
	var first error
	try := func(err error) { first = cmp.Or(first, err) }
	if !r.made {
		try(r.putCSINode(ctx, n, nil, ""))
	}
	registered := map[string]bool{}
	for i := range drivers {
		d := &drivers[i]
		registered[d.Name] = true
		if known, is := r.known[d.Name]; !is || !reflect.DeepEqual(known, *d) || nodePatch(n, d, "") != nil {
			try(r.install(ctx, &n, d))
		}
	}
	for name := range r.ours {
		if !registered[name] {
			try(r.uninstall(ctx, &n, name))
		}
	}
	return first
}

func (r *registrar) install(ctx context.Context, n **v1.Node, d *csi.Driver) error {
	r.ours[d.Name] = true
	if why := rejectReason(*n, d); why != "" {
		return errors.New(why)
	}
	if err := r.patchNode(ctx, n, nodePatch(*n, d, "")); err != nil {
		return err
	}
	if err := r.putCSINode(ctx, *n, d, ""); err != nil {
		return err
	}
	r.known[d.Name] = *d
	return nil
}

func (r *registrar) uninstall(ctx context.Context, n **v1.Node, name string) error {
	if err := r.putCSINode(ctx, *n, nil, name); err != nil {
		return err
	}
	if err := r.patchNode(ctx, n, nodePatch(*n, nil, name)); err != nil {
		return err
	}
	delete(r.ours, name)
	delete(r.known, name)
	return nil
}

// patchNode patches the status of the Node, with which a node may also change labels and
// annotations.
func (r *registrar) patchNode(ctx context.Context, n **v1.Node, patch []byte) error {
	if patch == nil {
		return nil
	}
	got := &v1.Node{}
	q := r.c.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(r.o.Node).SubResource("status").Body(patch)
	if err := r.c.do(ctx, q, got); err != nil {
		return err
	}
	*n = got
	return nil
}

// putCSINode updates the CSINode. After a conflict it reads it again and retries once.
func (r *registrar) putCSINode(ctx context.Context, n *v1.Node, with *csi.Driver, without string) error {
	err := r.attempt(ctx, n, with, without)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		r.seen = nil
		err = r.attempt(ctx, n, with, without)
	}
	if err != nil {
		r.seen = nil
	}
	r.made = r.made || err == nil
	return err
}

func (r *registrar) attempt(ctx context.Context, n *v1.Node, with *csi.Driver, without string) error {
	if r.seen == nil {
		seen := &storage.CSINode{}
		err := r.c.do(ctx, r.c.storage.Get().Resource("csinodes").Name(r.o.Node), seen)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			r.seen = seen
		}
	}
	next, got := csiNode(r.seen, n, with, without), &storage.CSINode{}
	q := r.c.storage.Post().Resource("csinodes").Body(next)
	if r.seen != nil {
		if equality.Semantic.DeepEqual(r.seen, next) {
			return nil
		}
		q = r.c.storage.Put().Resource("csinodes").Name(r.o.Node).Body(next)
	}
	if err := r.c.do(ctx, q, got); err != nil {
		return err
	}
	r.seen = got
	return nil
}
