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

// keeper has the cluster's Node be what this machine is.
type keeper struct {
	o     *Options
	state server.Viewer
	c     *client
	say   *speaker
	inUse *inUse
	// uid is of the Node, for whoever belongs to it; nil while there is none.
	uid atomic.Pointer[types.UID]

	looked  int      // sighting.anew of the newest sighting; 0: there was none
	sighted *v1.Node // in it; nil: none
	seen    *v1.Node // as the cluster has it, or has answered; nil: it has none
	adopted bool     // it was podd's once, in this life
	sent    time.Time
	every   time.Duration // the status is sent so long after sent
}

// run does so until ctx is done. Whatever is new of the machine is sent at once;
// what others wrote is looked at when the status is.
func (k *keeper) run(ctx context.Context, nodes *latest[sighting[*v1.Node]]) {
	var b backoff
	var again <-chan time.Time // runs after an attempt that failed
	var machine *v1.Node       // that was sent
	due := false
	tick := time.NewTicker(k.o.UpdateFrequency)
	defer tick.Stop()
	for {
		view := k.state.View()
		s, sighted := nodes.get()
		volumes, otherWanted, otherHere := k.volumes()
		if s.anew > k.looked {
			again = nil // the cluster answers
		}
		due = k.take(s) || due || view.Machine != machine || k.seen != nil && !slices.Equal(volumes, k.seen.Status.VolumesInUse)
		if due && again == nil && k.looked > 0 && view.Machine != nil {
			machine, due = view.Machine, false
			err := k.sync(ctx, machine, volumes, time.Now())
			if err == nil && k.seen != nil {
				k.inUse.report(k.seen.Status.VolumesInUse)
			}
			k.say.report(ctx, ofStatus, err)
			if err == nil || settled(err) {
				b = backoff{}
			} else {
				due, again = true, time.After(b.next())
			}
			continue // much may have changed meanwhile
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

// volumes are those that the status is to name, with channels of which one is closed
// when there may be others.
func (k *keeper) volumes() (names []v1.UniqueVolumeName, wanted, here <-chan struct{}) {
	var uses []csi.Use
	if k.o.CSI != nil {
		uses, here = k.o.CSI.InUse()
	}
	var seen []v1.UniqueVolumeName
	if k.seen != nil {
		seen = k.seen.Status.VolumesInUse
	}
	names, wanted = k.inUse.name(seen, uses)
	return names, wanted, here
}

// settled is an error that trying again does not mend.
func settled(err error) bool {
	switch err.(type) {
	case goneError, missingError:
		return true
	}
	return false
}

// take says whether what the cluster has is to be looked at at once. One sighting
// is taken once: what podd itself sent since is newer.
func (k *keeper) take(s sighting[*v1.Node]) bool {
	n := s.items[types.NamespacedName{Name: k.o.Node}]
	if n == k.sighted && s.anew == k.looked {
		return false
	}
	anew := s.anew > k.looked
	k.sighted, k.looked = n, s.anew
	other := (n == nil) != (k.seen == nil) || n != nil && n.UID != k.seen.UID
	k.see(n)
	return anew || other
}

func (k *keeper) see(n *v1.Node) {
	k.seen = n
	var uid *types.UID
	if n != nil {
		uid = &n.UID
	}
	k.uid.Store(uid)
}

// sync makes one attempt.
func (k *keeper) sync(ctx context.Context, machine *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	if k.seen == nil {
		return k.absent(ctx, machine, volumes, now)
	}
	next := k.seen
	if !k.adopted {
		next = k.o.adopted(next, machine)
	}
	next = k.o.updated(next, machine, now)
	next.Status.VolumesInUse = volumes
	is := changed(k.seen, next)
	if !is && !k.sent.IsZero() && now.Sub(k.sent) < k.every {
		return nil
	}
	text, err := patch(k.seen, next)
	if err != nil {
		return err
	}
	var got v1.Node
	request := k.c.beats.Patch(types.StrategicMergePatchType).Resource("nodes").Name(k.o.Node).SubResource("status").Body(text)
	err = k.c.into(ctx, request, &got)
	if apierrors.IsNotFound(err) {
		return nil // whoever follows tells of it
	}
	if err != nil {
		return err
	}
	k.took(&got, now, is)
	return nil
}

// absent makes the Node if podd may, once.
func (k *keeper) absent(ctx context.Context, machine *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	switch {
	case k.adopted:
		return goneError{k.o.Node}
	case !k.o.Register:
		return missingError{k.o.Node}
	}
	var n v1.Node
	made := k.o.made(machine, now)
	made.Status.VolumesInUse = volumes
	err := k.c.into(ctx, k.c.core.Post().Resource("nodes").Body(made), &n)
	if apierrors.IsAlreadyExists(err) {
		return nil // whoever follows tells of it
	}
	if err != nil {
		return err
	}
	k.took(&n, now, true)
	return nil
}

// took notes what the cluster made of an attempt, which was of something new or
// only of the time. Nodes that changed together are not to go on together.
func (k *keeper) took(n *v1.Node, now time.Time, changed bool) {
	k.every = k.o.ReportFrequency
	if changed || k.sent.IsZero() {
		k.every = time.Duration(float64(k.every) * (0.5 + rand.Float64()))
	}
	if !k.adopted {
		k.o.Log.Info("node of a cluster", "node", k.o.Node, "cluster", k.c.host)
	}
	k.adopted, k.sent = true, now
	k.see(n)
}
