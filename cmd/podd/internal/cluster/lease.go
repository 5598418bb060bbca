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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
)

// leaseNamespace is the namespace of node leases.
const leaseNamespace = "kube-node-lease"

// A leaseRenewer renews the node's Lease, which is the heartbeat of the node.
type leaseRenewer struct {
	o        *Options
	c        *apiserver.Client
	problems *problemReporter
	ownerUID *atomic.Pointer[types.UID] // UID of the Node; nil if the Node does not exist
	lease    *coordination.Lease        // the Lease in the last response; nil if the Lease must be read
}

// run renews the Lease whenever a quarter of its duration has passed, until ctx is done. After a
// failure it retries with the kubelet's backoff.
func (l *leaseRenewer) run(ctx context.Context) {
	var b backoff.Backoff
	missedResponses := 0 // number of consecutive attempts without a response
	for {
		sent, err := l.renew(ctx)
		if missedResponses++; err == nil || apiserver.IsAPIError(err) {
			missedResponses = 0
		}
		wait := l.o.LeaseDuration / 4
		wait += time.Duration(rand.Float64() * 0.04 * float64(wait))
		switch {
		case err != nil:
			if missedResponses > 1 {
				l.c.CloseConnections() // a connection that hangs would delay all later requests
			}
			wait = b.Next()
		case !sent:
			wait = min(b.Next(), time.Second)
		default:
			b = backoff.Backoff{}
		}
		if sent {
			l.problems.report(ctx, partLease, err)
		}
		if !backoff.Sleep(ctx, wait) {
			return
		}
	}
}

// renew renews the Lease, or creates the Lease if it does not exist. sent is false if renew sent no
// request, because the Node does not exist. If the Lease was changed or deleted by another client,
// renew reads the Lease again and retries once.
func (l *leaseRenewer) renew(ctx context.Context) (sent bool, err error) {
	sent, err = l.renewOnce(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.lease = nil
		return l.renewOnce(ctx)
	}
	return sent, err
}

// renewOnce is like renew, but does not retry.
func (l *leaseRenewer) renewOnce(ctx context.Context) (sent bool, err error) {
	if l.lease == nil {
		if l.ownerUID.Load() == nil {
			return false, nil
		}
		var created bool
		if l.lease, created, err = l.getOrCreate(ctx); err != nil || created {
			return true, err
		}
	}
	var response coordination.Lease
	err = l.c.Do(ctx, l.c.Leases.Put().Namespace(leaseNamespace).Resource("leases").Name(l.o.NodeName).Body(l.renewedLease()), &response)
	if err == nil {
		l.lease = &response
	}
	return true, err
}

// getOrCreate returns the Lease in the API server. created is true if the Lease did not exist and
// getOrCreate has created it.
func (l *leaseRenewer) getOrCreate(ctx context.Context) (_ *coordination.Lease, created bool, err error) {
	var response coordination.Lease
	err = l.c.Do(ctx, l.c.Leases.Get().Namespace(leaseNamespace).Resource("leases").Name(l.o.NodeName), &response)
	if apierrors.IsNotFound(err) {
		l.lease = &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: l.o.NodeName},
			Spec:       coordination.LeaseSpec{HolderIdentity: &l.o.NodeName},
		}
		created, err = true, l.c.Do(ctx, l.c.Leases.Post().Namespace(leaseNamespace).Resource("leases").Body(l.renewedLease()), &response)
	}
	if err != nil {
		return nil, false, err
	}
	return &response, created, nil
}

// renewedLease returns a copy of the Lease with the current time and owner.
func (l *leaseRenewer) renewedLease() *coordination.Lease {
	next := l.lease.DeepCopy()
	next.Spec.LeaseDurationSeconds = new(int32(l.o.LeaseDuration / time.Second))
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if uid := l.ownerUID.Load(); uid != nil {
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.o.NodeName, UID: *uid}}
	}
	return next
}
