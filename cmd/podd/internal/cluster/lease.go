package cluster

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leases is the namespace of every node's lease.
const leases = "kube-node-lease"

// lessee renews the node's lease, the sign of life that costs least.
type lessee struct {
	o      *Options
	c      *client
	say    *speaker
	owner  *atomic.Pointer[types.UID] // of the Node; nil while there is none
	latest *coordination.Lease        // as the cluster has it; nil: ask
}

// run renews it four times as often as it must be, and at the same pace as the
// kubelet when that fails.
func (l *lessee) run(ctx context.Context) {
	var b backoff
	silent := 0 // attempts in a row that nobody answered
	for {
		asked, err := l.renew(ctx)
		if silent++; err == nil || answered(err) {
			silent = 0
		}
		wait := l.o.Lease / 4
		wait += time.Duration(rand.Float64() * 0.04 * float64(wait))
		switch {
		case err != nil:
			if silent > 1 {
				l.c.close() // a connection that hangs would hold up all that follow
			}
			wait = b.next()
		case !asked:
			wait = min(b.next(), time.Second)
		default:
			b = backoff{}
		}
		if asked {
			l.say.report(ctx, ofLease, err)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// renew says whether there was something to ask for: a lease is made only for a
// Node, and one that is there is renewed in any case. What somebody else changed,
// or took away, is looked at again.
func (l *lessee) renew(ctx context.Context) (asked bool, err error) {
	asked, err = l.attempt(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.latest = nil
		return l.attempt(ctx)
	}
	return asked, err
}

func (l *lessee) attempt(ctx context.Context) (asked bool, err error) {
	if l.latest == nil {
		if l.owner.Load() == nil {
			return false, nil
		}
		var made bool
		if l.latest, made, err = l.ensure(ctx); err != nil || made {
			return true, err
		}
	}
	var now coordination.Lease
	err = l.c.into(ctx, l.c.leases.Put().Namespace(leases).Resource("leases").Name(l.o.Node).Body(l.next()), &now)
	if err == nil {
		l.latest = &now
	}
	return true, err
}

// ensure is the lease, which is made where there is none.
func (l *lessee) ensure(ctx context.Context) (_ *coordination.Lease, made bool, err error) {
	var now coordination.Lease
	err = l.c.into(ctx, l.c.leases.Get().Namespace(leases).Resource("leases").Name(l.o.Node), &now)
	if apierrors.IsNotFound(err) {
		l.latest = &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: l.o.Node},
			Spec:       coordination.LeaseSpec{HolderIdentity: &l.o.Node},
		}
		made, err = true, l.c.into(ctx, l.c.leases.Post().Namespace(leases).Resource("leases").Body(l.next()), &now)
	}
	if err != nil {
		return nil, false, err
	}
	return &now, made, nil
}

// next is the latest, renewed now.
func (l *lessee) next() *coordination.Lease {
	next := l.latest.DeepCopy()
	next.Spec.LeaseDurationSeconds = new(int32(l.o.Lease / time.Second))
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if uid := l.owner.Load(); uid != nil {
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.o.Node, UID: *uid}}
	}
	return next
}
