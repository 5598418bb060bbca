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

// leases is the namespace of node leases.
const leases = "kube-node-lease"

// A leaseRenewer renews the node's lease, which is the heartbeat.
type leaseRenewer struct {
	o        *Options
	c        *client
	problems *problemReporter
	owner    *atomic.Pointer[types.UID] // of the Node; nil if there is none
	lease    *coordination.Lease        // as last returned; nil: unknown
}

// run renews the lease every quarter of its duration, and retries failures with the
// kubelet's backoff.
func (l *leaseRenewer) run(ctx context.Context) {
	var b backoff
	silent := 0 // consecutive attempts without a response
	for {
		asked, err := l.renew(ctx)
		if silent++; err == nil || isAPIError(err) {
			silent = 0
		}
		wait := l.o.Lease / 4
		wait += time.Duration(rand.Float64() * 0.04 * float64(wait))
		switch {
		case err != nil:
			if silent > 1 {
				l.c.close() // a connection that hangs would delay all further requests
			}
			wait = b.next()
		case !asked:
			wait = min(b.next(), time.Second)
		default:
			b = backoff{}
		}
		if asked {
			l.problems.report(ctx, ofLease, err)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// renew renews the lease, or creates it if the Node exists. It reports whether it sent a
// request. After a conflict it reads the lease again.
func (l *leaseRenewer) renew(ctx context.Context) (asked bool, err error) {
	asked, err = l.attempt(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.lease = nil
		return l.attempt(ctx)
	}
	return asked, err
}

func (l *leaseRenewer) attempt(ctx context.Context) (asked bool, err error) {
	if l.lease == nil {
		if l.owner.Load() == nil {
			return false, nil
		}
		var made bool
		if l.lease, made, err = l.ensure(ctx); err != nil || made {
			return true, err
		}
	}
	var now coordination.Lease
	err = l.c.do(ctx, l.c.leases.Put().Namespace(leases).Resource("leases").Name(l.o.Node).Body(l.next()), &now)
	if err == nil {
		l.lease = &now
	}
	return true, err
}

// ensure returns the lease and creates it if it does not exist.
func (l *leaseRenewer) ensure(ctx context.Context) (_ *coordination.Lease, made bool, err error) {
	var now coordination.Lease
	err = l.c.do(ctx, l.c.leases.Get().Namespace(leases).Resource("leases").Name(l.o.Node), &now)
	if apierrors.IsNotFound(err) {
		l.lease = &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: l.o.Node},
			Spec:       coordination.LeaseSpec{HolderIdentity: &l.o.Node},
		}
		made, err = true, l.c.do(ctx, l.c.leases.Post().Namespace(leases).Resource("leases").Body(l.next()), &now)
	}
	if err != nil {
		return nil, false, err
	}
	return &now, made, nil
}

// next returns the lease with the current time.
func (l *leaseRenewer) next() *coordination.Lease {
	next := l.lease.DeepCopy()
	next.Spec.LeaseDurationSeconds = new(int32(l.o.Lease / time.Second))
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if uid := l.owner.Load(); uid != nil {
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.o.Node, UID: *uid}}
	}
	return next
}
