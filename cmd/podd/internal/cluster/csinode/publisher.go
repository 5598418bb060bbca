package csinode

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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/reconcile/volume/csi"
)

// A Publisher publishes the CSI drivers of this node in an annotation and labels of the
// Node and in the CSINode. It always creates the CSINode. An error of one driver does not affect
// other drivers. The Publisher removes a driver that unregisters, but keeps the entries of
// drivers that an earlier podd process has published.
type Publisher struct {
	ownDrivers map[string]bool // names of the drivers that this podd process has published or tried to publish

	// The following fields belong to one connection.
	o             *Options
	nodeUID       types.UID             // UID of the Node for which the following fields are valid
	hasCSINode    bool                  // the CSINode exists
	cachedCSINode *storage.CSINode      // the CSINode in the last response; nil if it must be read
	published     map[string]csi.Driver // published drivers by name
}

// Options configures one connection of a Publisher. CSI may be nil.
type Options struct {
	Client   *apiserver.Client
	NodeName string // name of the Node and the CSINode
	CSI      Drivers
	Nodes    *apiserver.Store[*v1.Node] // contains the Node if it exists
	// Report is called with the result of each attempt; nil is a success.
	Report func(context.Context, error)
}

// Drivers provides the registered CSI drivers of this node.
type Drivers interface {
	// Registered returns the drivers that are ready for volumes, and a channel that is closed when the
	// list changes.
	Registered() ([]csi.Driver, <-chan struct{})
}

// Run publishes the drivers of the node whenever they change, until ctx is done. It must not be called
// concurrently.
func (r *Publisher) Run(ctx context.Context, o Options) {
	r.o, r.nodeUID = &o, ""
	if r.ownDrivers == nil {
		r.ownDrivers = map[string]bool{}
	}
	b := backoff.Backoff{}
	for {
		var drivers []csi.Driver
		var driversChanged <-chan struct{}
		if o.CSI != nil {
			drivers, driversChanged = o.CSI.Registered()
		}
		n, nodesChanged := o.Nodes.Find(types.NamespacedName{Name: o.NodeName})
		var retry <-chan time.Time
		if n != nil {
			err := r.sync(ctx, n, drivers)
			o.Report(ctx, err)
			if err == nil {
				b = backoff.Backoff{}
			} else {
				retry = time.After(backoff.WithJitter(b.NextUpTo(apiserver.MaxCachedWait)))
			}
		}
		if retry != nil {
			nodesChanged = nil // do not retry after a change of the Node, because few changes make a retry succeed
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

// sync publishes new and changed drivers and removes unregistered drivers. It continues after an
// error and returns the first error.
func (r *Publisher) sync(ctx context.Context, n *v1.Node, drivers []csi.Driver) error {
	if r.nodeUID != n.UID {
		r.nodeUID, r.hasCSINode, r.cachedCSINode, r.published = n.UID, false, nil, map[string]csi.Driver{}
	}
	var firstErr error
	record := func(err error) { firstErr = cmp.Or(firstErr, err) }
	if !r.hasCSINode {
		record(r.putCSINode(ctx, n, nil, ""))
	}
	registered := map[string]bool{}
	for i := range drivers {
		d := &drivers[i]
		registered[d.Name] = true
		if published, ok := r.published[d.Name]; !ok || !reflect.DeepEqual(published, *d) || driverPatch(n, d, "") != nil {
			record(r.publish(ctx, &n, d))
		}
	}
	for name := range r.ownDrivers {
		if !registered[name] {
			record(r.unpublish(ctx, &n, name))
		}
	}
	return firstErr
}

// publish publishes a driver in the Node and the CSINode. It sets *n to the patched Node.
func (r *Publisher) publish(ctx context.Context, n **v1.Node, d *csi.Driver) error {
	r.ownDrivers[d.Name] = true
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

// unpublish removes a driver from the CSINode and the Node. It sets *n to the patched Node.
func (r *Publisher) unpublish(ctx context.Context, n **v1.Node, name string) error {
	if err := r.putCSINode(ctx, *n, nil, name); err != nil {
		return err
	}
	if err := r.patchNode(ctx, n, driverPatch(*n, nil, name)); err != nil {
		return err
	}
	delete(r.ownDrivers, name)
	delete(r.published, name)
	return nil
}

// patchNode patches the Node, unless patch is nil, and sets *n to the response. It sends the patch
// to the subresource status, because a node may also change labels and annotations there.
func (r *Publisher) patchNode(ctx context.Context, n **v1.Node, patch []byte) error {
	if patch == nil {
		return nil
	}
	response := &v1.Node{}
	q := r.o.Client.Core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(r.o.NodeName).SubResource("status").Body(patch)
	if err := r.o.Client.Do(ctx, q, response); err != nil {
		return err
	}
	*n = response
	return nil
}

// putCSINode creates or updates the CSINode. If added is not nil, it adds this driver. If removed
// is not "", it removes the driver with this name. After a conflict it reads the CSINode again and
// retries once.
func (r *Publisher) putCSINode(ctx context.Context, n *v1.Node, added *csi.Driver, removed string) error {
	err := r.putCSINodeOnce(ctx, n, added, removed)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		r.cachedCSINode = nil
		err = r.putCSINodeOnce(ctx, n, added, removed)
	}
	if err != nil {
		r.cachedCSINode = nil
	}
	r.hasCSINode = r.hasCSINode || err == nil
	return err
}

// putCSINodeOnce is like putCSINode, but does not retry.
func (r *Publisher) putCSINodeOnce(ctx context.Context, n *v1.Node, added *csi.Driver, removed string) error {
	if r.cachedCSINode == nil {
		stored := &storage.CSINode{}
		err := r.o.Client.Do(ctx, r.o.Client.Storage.Get().Resource("csinodes").Name(r.o.NodeName), stored)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			r.cachedCSINode = stored
		}
	}
	next, response := updatedCSINode(r.cachedCSINode, n, added, removed), &storage.CSINode{}
	q := r.o.Client.Storage.Post().Resource("csinodes").Body(next)
	if r.cachedCSINode != nil {
		if equality.Semantic.DeepEqual(r.cachedCSINode, next) {
			return nil
		}
		q = r.o.Client.Storage.Put().Resource("csinodes").Name(r.o.NodeName).Body(next)
	}
	if err := r.o.Client.Do(ctx, q, response); err != nil {
		return err
	}
	r.cachedCSINode = response
	return nil
}
