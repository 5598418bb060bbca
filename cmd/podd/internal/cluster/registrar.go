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

// registrar has the cluster know the CSI drivers of this machine: the Node's
// annotation and labels, and its CSINode, which is there in any case. One driver's
// trouble is none of another's. Drivers of an earlier podd stay until they register
// again, those that registered here go when they unregister.
type registrar struct {
	ours map[string]bool // that this podd told the cluster of, or tried to

	// Of one life:
	o     *Options
	c     *client
	uid   types.UID             // of the Node that the following are of
	made  bool                  // the CSINode is there
	seen  *storage.CSINode      // as the cluster answered last; nil: ask
	known map[string]csi.Driver // that it was told of
}

// run does so until ctx is done.
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
				again = time.After(spread(b.upTo(mostKnown)))
			}
		}
		if again != nil {
			otherNodes = nil // much is written there, and little of it is to try again for
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

// sync makes one attempt, of what is to be told by now.
func (r *registrar) sync(ctx context.Context, n *v1.Node, drivers []csi.Driver) error {
	if r.uid != n.UID {
		r.uid, r.made, r.seen, r.known = n.UID, false, nil, map[string]csi.Driver{}
	}
	var first error
	try := func(err error) { first = cmp.Or(first, err) }
	if !r.made {
		try(r.put(ctx, n, nil, ""))
	}
	registered := map[string]bool{}
	for i := range drivers {
		d := &drivers[i]
		registered[d.Name] = true
		if known, is := r.known[d.Name]; !is || !reflect.DeepEqual(known, *d) || nodeWords(n, d, "") != nil {
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
	if why := unfit(*n, d); why != "" {
		return errors.New(why)
	}
	if err := r.say(ctx, n, nodeWords(*n, d, "")); err != nil {
		return err
	}
	if err := r.put(ctx, *n, d, ""); err != nil {
		return err
	}
	r.known[d.Name] = *d
	return nil
}

func (r *registrar) uninstall(ctx context.Context, n **v1.Node, name string) error {
	if err := r.put(ctx, *n, nil, name); err != nil {
		return err
	}
	if err := r.say(ctx, n, nodeWords(*n, nil, name)); err != nil {
		return err
	}
	delete(r.ours, name)
	delete(r.known, name)
	return nil
}

// say patches the Node, whose labels and annotations a node changes with its status.
func (r *registrar) say(ctx context.Context, n **v1.Node, patch []byte) error {
	if patch == nil {
		return nil
	}
	got := &v1.Node{}
	q := r.c.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(r.o.Node).SubResource("status").Body(patch)
	if err := r.c.into(ctx, q, got); err != nil {
		return err
	}
	*n = got
	return nil
}

// put has the CSINode be what it is to be; what somebody else changed meanwhile is
// looked at again.
func (r *registrar) put(ctx context.Context, n *v1.Node, with *csi.Driver, without string) error {
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
		err := r.c.into(ctx, r.c.storage.Get().Resource("csinodes").Name(r.o.Node), seen)
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
	if err := r.c.into(ctx, q, got); err != nil {
		return err
	}
	r.seen = got
	return nil
}
