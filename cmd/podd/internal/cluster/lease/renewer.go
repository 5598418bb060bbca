// Package lease renews the Lease of the node.
//
// If a Lease has a deleted Node as its owner, podd replaces the owner before the garbage collector deletes
// the Lease. This differs from the kubelet.
package lease

import (
	"context"
	"math/rand/v2"
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

// A Renewer renews the node's Lease, which is the heartbeat of the node.
type Renewer struct {
	Client   *apiserver.Client
	NodeName string            // name of the Node and the Lease
	Duration time.Duration     // duration of the Lease, in whole seconds
	OwnerUID func() *types.UID // returns the UID of the Node, or nil if the Node does not exist
	// Report is called with the result of each attempt; nil is a success.
	Report func(context.Context, error)

	lease *coordination.Lease // the Lease in the last response; nil if the Lease must be read
}

// Run renews the Lease whenever a quarter of its duration has passed, until ctx is done. After a
// failure it retries with the kubelet's backoff.
func (l *Renewer) Run(ctx context.Context) {
	var b backoff.Backoff
	missedResponses := 0 // number of consecutive attempts without a response
	for {
		sent, err := l.renew(ctx)
		if missedResponses++; err == nil || apiserver.IsAPIError(err) {
			missedResponses = 0
		}
		wait := l.Duration / 4
		wait += time.Duration(rand.Float64() * 0.04 * float64(wait))
		switch {
		case err != nil:
			if missedResponses > 1 {
				l.Client.CloseConnections() // a connection that hangs would delay all later requests
			}
			wait = b.Next()
		case !sent:
			wait = min(b.Next(), time.Second)
		default:
			b = backoff.Backoff{}
		}
		if sent {
			l.Report(ctx, err)
		}
		if !backoff.Sleep(ctx, wait) {
			return
		}
	}
}

// renew renews the Lease, or creates the Lease if it does not exist. sent is false if renew sent no
// request, because the Node does not exist. If the Lease was changed or deleted by another client,
// renew reads the Lease again and retries once.
func (l *Renewer) renew(ctx context.Context) (sent bool, err error) {
	sent, err = l.renewOnce(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.lease = nil
		return l.renewOnce(ctx)
	}
	return sent, err
}

// renewOnce is like renew, but does not retry.
func (l *Renewer) renewOnce(ctx context.Context) (sent bool, err error) {
	if l.lease == nil {
		if l.OwnerUID() == nil {
			return false, nil
		}
		var created bool
		if l.lease, created, err = l.getOrCreate(ctx); err != nil || created {
			return true, err
		}
	}
	var response coordination.Lease
	err = l.Client.Do(ctx, l.Client.Leases.Put().Namespace(leaseNamespace).Resource("leases").Name(l.NodeName).Body(l.renewedLease()), &response)
	if err == nil {
		l.lease = &response
	}
	return true, err
}

// getOrCreate returns the Lease in the API server. created is true if the Lease did not exist and
// getOrCreate has created it.
func (l *Renewer) getOrCreate(ctx context.Context) (_ *coordination.Lease, created bool, err error) {
	var response coordination.Lease
	err = l.Client.Do(ctx, l.Client.Leases.Get().Namespace(leaseNamespace).Resource("leases").Name(l.NodeName), &response)
	if apierrors.IsNotFound(err) {
		l.lease = &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: l.NodeName},
			Spec:       coordination.LeaseSpec{HolderIdentity: &l.NodeName},
		}
		created, err = true, l.Client.Do(ctx, l.Client.Leases.Post().Namespace(leaseNamespace).Resource("leases").Body(l.renewedLease()), &response)
	}
	if err != nil {
		return nil, false, err
	}
	return &response, created, nil
}

// renewedLease returns a copy of the Lease with the current time and owner.
func (l *Renewer) renewedLease() *coordination.Lease {
	next := l.lease.DeepCopy()
	next.Spec.LeaseDurationSeconds = new(int32(l.Duration / time.Second))
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if uid := l.OwnerUID(); uid != nil {
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.NodeName, UID: *uid}}
	}
	return next
}
