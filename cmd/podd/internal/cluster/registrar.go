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

// A registrar publishes the CSI drivers of this node in the annotation and labels of the Node
// and in the CSINode, which it always creates. An error of one driver does not affect the
// others. A driver that unregisters is removed, but drivers that an earlier podd has published
// are kept.
type registrar struct {
	handled map[string]bool // drivers that this podd has published or tried to publish

	// Per connection:
	o         *Options
	c         *client
	uid       types.UID        // of the Node that the following fields belong to
	created   bool             // the CSINode exists
	cached    *storage.CSINode // last response; nil: unknown
	published map[string]csi.Driver
}

// run syncs the drivers until ctx is done.
func (r *registrar) run(ctx context.Context, api *client, c *Cluster, problems reporter) {
	r.o, r.c, r.uid = &c.o, api, ""
	if r.handled == nil {
		r.handled = map[string]bool{}
	}
	b := backoff{}
	for {
		var drivers []csi.Driver
		var driversChanged <-chan struct{}
		if c.o.CSI != nil {
			drivers, driversChanged = c.o.CSI.Registered()
		}
		nodes, nodesChanged := c.nodes.get()
		var retry <-chan time.Time
		if n := nodes.items[types.NamespacedName{Name: c.o.Node}]; n != nil {
			err := r.sync(ctx, n, drivers)
			problems.report(ctx, partCSINode, err)
			if err == nil {
				b = backoff{}
			} else {
				retry = time.After(spread(b.upTo(maxCachedWait)))
			}
		}
		if retry != nil {
			nodesChanged = nil // the Node changes often, and rarely so that a retry succeeds
		}
		select {
		case <-driversChanged:
		case <-nodesChanged:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// sync publishes new and changed drivers and removes unregistered ones. It continues after an
// error and returns the first one.
func (r *registrar) sync(ctx context.Context, n *v1.Node, drivers []csi.Driver) error {
	if r.uid != n.UID {
		r.uid, r.created, r.cached, r.published = n.UID, false, nil, map[string]csi.Driver{}
	}
	var first error
	try := func(err error) { first = cmp.Or(first, err) }
	if !r.created {
		try(r.putCSINode(ctx, n, nil, ""))
	}
	registered := map[string]bool{}
	for i := range drivers {
		d := &drivers[i]
		registered[d.Name] = true
		if published, ok := r.published[d.Name]; !ok || !reflect.DeepEqual(published, *d) || driverPatch(n, d, "") != nil {
			try(r.install(ctx, &n, d))
		}
	}
	for name := range r.handled {
		if !registered[name] {
			try(r.uninstall(ctx, &n, name))
		}
	}
	return first
}

// install publishes a driver. It replaces *n by the patched Node.
func (r *registrar) install(ctx context.Context, n **v1.Node, d *csi.Driver) error {
	r.handled[d.Name] = true
	if reason := checkDriver(*n, d); reason != "" {
		return errors.New(reason)
	}
	if err := r.patchNode(ctx, n, driverPatch(*n, d, "")); err != nil {
		return err
	}
	if err := r.putCSINode(ctx, *n, d, ""); err != nil {
		return err
	}
	r.published[d.Name] = *d
	return nil
}

// uninstall removes a driver. It replaces *n by the patched Node.
func (r *registrar) uninstall(ctx context.Context, n **v1.Node, name string) error {
	if err := r.putCSINode(ctx, *n, nil, name); err != nil {
		return err
	}
	if err := r.patchNode(ctx, n, driverPatch(*n, nil, name)); err != nil {
		return err
	}
	delete(r.handled, name)
	delete(r.published, name)
	return nil
}

// patchNode patches the Node, unless patch is nil, and replaces *n by the result. It uses the
// status subresource, with which a node may also change labels and annotations.
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

// putCSINode creates or updates the CSINode, see updatedCSINode. After a conflict it reads the
// CSINode again and retries once.
func (r *registrar) putCSINode(ctx context.Context, n *v1.Node, with *csi.Driver, without string) error {
	err := r.attempt(ctx, n, with, without)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		r.cached = nil
		err = r.attempt(ctx, n, with, without)
	}
	if err != nil {
		r.cached = nil
	}
	r.created = r.created || err == nil
	return err
}

// attempt is like putCSINode, but does not retry.
func (r *registrar) attempt(ctx context.Context, n *v1.Node, with *csi.Driver, without string) error {
	if r.cached == nil {
		present := &storage.CSINode{}
		err := r.c.do(ctx, r.c.storage.Get().Resource("csinodes").Name(r.o.Node), present)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			r.cached = present
		}
	}
	next, got := updatedCSINode(r.cached, n, with, without), &storage.CSINode{}
	q := r.c.storage.Post().Resource("csinodes").Body(next)
	if r.cached != nil {
		if equality.Semantic.DeepEqual(r.cached, next) {
			return nil
		}
		q = r.c.storage.Put().Resource("csinodes").Name(r.o.Node).Body(next)
	}
	if err := r.c.do(ctx, q, got); err != nil {
		return err
	}
	r.cached = got
	return nil
}
