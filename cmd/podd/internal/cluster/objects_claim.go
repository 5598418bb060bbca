package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// claimLook is how often a claim of a CSI driver's volume is got again, which may grow.
// The kubelet gets it, and the volume, about as often.
const claimLook = 90 * time.Second

// claim gets a claim and the volume that the cluster has bound to it, again until
// it has: a node may watch neither. What is bound stays so while a pod has it.
func (l *lookup) claim(ctx context.Context, grew *latest[map[types.NamespacedName]int]) {
	b, began, last := backoff{first: soon}, time.Now(), ""
	for ctx.Err() == nil {
		found, err := l.client.claim(ctx, l.ref)
		switch {
		case apierrors.IsNotFound(err):
			if why := l.absent(); last != why.lack.Why {
				last = why.lack.Why
				l.send(ctx, why)
			}
		case err != nil:
			l.lacks(ctx, err, began)
		default:
			why := manifest.Unbound(found.claim, found.volume)
			if why == "" || why != last {
				last = why
				l.send(ctx, finding{object: found})
			}
			if why == "" {
				l.watchClaim(ctx, found, grew)
				return
			}
		}
		sleep(ctx, spread(b.upTo(mostBlind)))
	}
}

// watchClaim looks whether a bound claim of a driver's volume has changed. Nothing but
// its size, and the volume's, is news.
func (l *lookup) watchClaim(ctx context.Context, has *boundClaim, grew *latest[map[types.NamespacedName]int]) {
	told, other := grew.get()
	for has.volume.Spec.CSI != nil {
		look, seen := time.After(spread(claimLook)), told[l.ref.NamespacedName]
		for waits := true; waits && told[l.ref.NamespacedName] == seen; {
			select {
			case <-look:
				waits = false
			case <-other:
				told, other = grew.get()
			case <-ctx.Done():
				return
			}
		}
		claim, err := l.client.claimAlone(ctx, l.ref)
		if err != nil || claim.ResourceVersion == has.claim.ResourceVersion {
			continue
		}
		found, err := l.client.claim(ctx, l.ref)
		if err == nil && manifest.Unbound(found.claim, found.volume) == "" {
			has = found
			l.send(ctx, finding{object: found})
		}
	}
}

// claimAlone is without its volume.
func (c *client) claimAlone(ctx context.Context, ref manifest.ObjectRef) (*v1.PersistentVolumeClaim, error) {
	claim := &v1.PersistentVolumeClaim{}
	err := c.into(ctx, c.core.Get().Namespace(ref.Namespace).Resource("persistentvolumeclaims").Name(ref.Name), claim)
	return slim(claim), err
}

// claim is without a volume where that is not there.
func (c *client) claim(ctx context.Context, ref manifest.ObjectRef) (*boundClaim, error) {
	claim, err := c.claimAlone(ctx, ref)
	if err != nil {
		return nil, err
	}
	f, name := &boundClaim{claim: claim}, claim.Spec.VolumeName
	if name == "" || f.claim.Status.Phase != v1.ClaimBound {
		return f, nil // a node may not ask for it yet
	}
	volume := &v1.PersistentVolume{}
	switch err := c.into(ctx, c.core.Get().Resource("persistentvolumes").Name(name), volume); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		f.volume = slim(volume)
	}
	return f, nil
}
