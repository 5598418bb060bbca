package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// claimInterval is the interval between reads of a claim of a CSI volume, which may be
// resized. The kubelet's interval is similar.
const claimInterval = 90 * time.Second

// claim reads a claim and its volume until the claim is bound, because a node may not
// watch either. A bound claim remains bound.
func (l *lookup) claim(ctx context.Context, grew *watchable[map[types.NamespacedName]int]) {
	b, began, last := backoff{first: firstLookupWait}, time.Now(), ""
	for ctx.Err() == nil {
		found, err := l.client.claim(ctx, l.ref)
		switch {
		case apierrors.IsNotFound(err):
			if why := l.absent(); last != why.lack.Why {
				last = why.lack.Why
				l.send(ctx, why)
			}
		case err != nil:
			l.reportError(ctx, err, began)
		default:
			why := refs.UnboundReason(found.claim, found.volume)
			if why == "" || why != last {
				last = why
				l.send(ctx, lookupResult{object: found})
			}
			if why == "" {
				l.watchClaim(ctx, found, grew)
				return
			}
		}
		sleep(ctx, spread(b.upTo(maxUncachedWait)))
	}
}

// watchClaim polls a bound claim of a CSI volume. Only the sizes of the claim and volume
// can change.
func (l *lookup) watchClaim(ctx context.Context, has *boundClaim, grew *watchable[map[types.NamespacedName]int]) {
	told, other := grew.get()
	for has.volume.Spec.CSI != nil {
		look, seen := time.After(spread(claimInterval)), told[l.ref.NamespacedName]
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
		if err == nil && refs.UnboundReason(found.claim, found.volume) == "" {
			has = found
			l.send(ctx, lookupResult{object: found})
		}
	}
}

// claimAlone returns the claim without its volume.
func (c *client) claimAlone(ctx context.Context, ref manifest.ObjectRef) (*v1.PersistentVolumeClaim, error) {
	claim := &v1.PersistentVolumeClaim{}
	err := c.do(ctx, c.core.Get().Namespace(ref.Namespace).Resource("persistentvolumeclaims").Name(ref.Name), claim)
	return slim(claim), err
}

// claim returns a claim and, if it is bound, its volume.
func (c *client) claim(ctx context.Context, ref manifest.ObjectRef) (*boundClaim, error) {
	claim, err := c.claimAlone(ctx, ref)
	if err != nil {
		return nil, err
	}
	f, name := &boundClaim{claim: claim}, claim.Spec.VolumeName
	if name == "" || f.claim.Status.Phase != v1.ClaimBound {
		return f, nil // NodeRestriction forbids to read it yet
	}
	volume := &v1.PersistentVolume{}
	switch err := c.do(ctx, c.core.Get().Resource("persistentvolumes").Name(name), volume); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		f.volume = slim(volume)
	}
	return f, nil
}
