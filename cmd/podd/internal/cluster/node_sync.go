package cluster

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
	"podd/server"
)

// A nodeSyncer keeps the Node object up to date with this node.
type nodeSyncer struct {
	o        *Options
	state    server.Viewer
	c        *client
	problems *problemReporter
	inUse    *volumesInUse
	// uid is the UID of the Node, for owner references; nil if there is none.
	uid atomic.Pointer[types.UID]

	lastList int      // snapshot.lists of the last snapshot; 0: none
	cached   *v1.Node // the Node in it; may be nil
	current  *v1.Node // the Node as last listed or returned; nil: it does not exist
	adopted  bool     // the Node has been synced by this connection
	sent     time.Time
	interval time.Duration // an unchanged status is sent this long after sent
}

// run syncs the Node until ctx is done. Changes on this node are sent at once. Changes by
// others are corrected with the next periodic status.
func (k *nodeSyncer) run(ctx context.Context, nodes *watchable[snapshot[*v1.Node]]) {
	var b backoff
	var again <-chan time.Time // fires after a failed attempt
	var machine *v1.Node       // that was sent
	due := false
	tick := time.NewTicker(k.o.UpdateFrequency)
	defer tick.Stop()
	for {
		view := k.state.View()
		s, sighted := nodes.get()
		volumes, otherWanted, otherHere := k.volumes()
		if s.lists > k.lastList {
			again = nil // the API server is reachable
		}
		due = k.update(s) || due || view.NodeObject != machine || k.current != nil && !slices.Equal(volumes, k.current.Status.VolumesInUse)
		if due && again == nil && k.lastList > 0 && view.NodeObject != nil {
			machine, due = view.NodeObject, false
			err := k.sync(ctx, machine, volumes, time.Now())
			if err == nil && k.current != nil {
				k.inUse.setReported(k.current.Status.VolumesInUse)
			}
			k.problems.report(ctx, ofStatus, err)
			if err == nil || isPermanent(err) {
				b = backoff{}
			} else {
				due, again = true, time.After(b.next())
			}
			continue // the state may have changed during the request
		}
		select {
		case <-sighted:
		case <-k.state.Changed(view.Revision):
		case <-otherWanted:
		case <-otherHere:
		case <-tick.C:
			due = true
		case <-again:
			again = nil
		case <-ctx.Done():
			return
		}
	}
}

// volumes returns the volumes that the status must name, and channels that are closed
// when those may change.
func (k *nodeSyncer) volumes() (names []v1.UniqueVolumeName, wanted, here <-chan struct{}) {
	var uses []csi.Use
	if k.o.CSI != nil {
		uses, here = k.o.CSI.InUse()
	}
	var seen []v1.UniqueVolumeName
	if k.current != nil {
		seen = k.current.Status.VolumesInUse
	}
	names, wanted = k.inUse.names(seen, uses)
	return names, wanted, here
}

// isPermanent reports whether a retry cannot solve the error.
func isPermanent(err error) bool {
	switch err.(type) {
	case goneError, missingError:
		return true
	}
	return false
}

// update applies a snapshot and reports whether the Node must be synced at once. Each
// snapshot is applied once, because podd's own updates are newer.
func (k *nodeSyncer) update(s snapshot[*v1.Node]) bool {
	n := s.items[types.NamespacedName{Name: k.o.Node}]
	if n == k.cached && s.lists == k.lastList {
		return false
	}
	anew := s.lists > k.lastList
	k.cached, k.lastList = n, s.lists
	other := (n == nil) != (k.current == nil) || n != nil && n.UID != k.current.UID
	k.setCurrent(n)
	return anew || other
}

func (k *nodeSyncer) setCurrent(n *v1.Node) {
	k.current = n
	var uid *types.UID
	if n != nil {
		uid = &n.UID
	}
	k.uid.Store(uid)
}

// sync makes one attempt.
func (k *nodeSyncer) sync(ctx context.Context, machine *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	if k.current == nil {
		return k.create(ctx, machine, volumes, now)
	}
	next := k.current
	if !k.adopted {
		next = k.o.adoptedNode(next, machine)
	}
	next = k.o.updatedNode(next, machine, now)
	next.Status.VolumesInUse = volumes
	is := isChanged(k.current, next)
	if !is && !k.sent.IsZero() && now.Sub(k.sent) < k.interval {
		return nil
	}
	text, err := patch(k.current, next)
	if err != nil {
		return err
	}
	var got v1.Node
	request := k.c.heartbeats.Patch(types.StrategicMergePatchType).Resource("nodes").Name(k.o.Node).SubResource("status").Body(text)
	err = k.c.do(ctx, request, &got)
	if apierrors.IsNotFound(err) {
		return nil // the reflector reports it
	}
	if err != nil {
		return err
	}
	k.recordSync(&got, now, is)
	return nil
}

// create creates the Node if podd is configured to, once.
func (k *nodeSyncer) create(ctx context.Context, machine *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	switch {
	case k.adopted:
		return goneError{k.o.Node}
	case !k.o.Register:
		return missingError{k.o.Node}
	}
	var n v1.Node
	made := k.o.newNode(machine, now)
	made.Status.VolumesInUse = volumes
	err := k.c.do(ctx, k.c.core.Post().Resource("nodes").Body(made), &n)
	if apierrors.IsAlreadyExists(err) {
		return nil // the reflector reports it
	}
	if err != nil {
		return err
	}
	k.recordSync(&n, now, true)
	return nil
}

// recordSync records the result of an attempt. After a change the next interval is
// randomized, so that nodes that changed together do not report together.
func (k *nodeSyncer) recordSync(n *v1.Node, now time.Time, changed bool) {
	k.interval = k.o.ReportFrequency
	if changed || k.sent.IsZero() {
		k.interval = time.Duration(float64(k.interval) * (0.5 + rand.Float64()))
	}
	if !k.adopted {
		k.o.Log.Info("node of a cluster", "node", k.o.Node, "cluster", k.c.host)
	}
	k.adopted, k.sent = true, now
	k.setCurrent(n)
}
