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

// claim polls a claim and its volume, because a node may watch neither. A bound claim remains
// bound, and is only polled further by watchClaim.
func (l *lookup) claim(ctx context.Context, growths *watchable[map[types.NamespacedName]int]) {
	b, began, last := backoff{first: firstLookupWait}, time.Now(), ""
	for ctx.Err() == nil {
		found, err := l.client.claim(ctx, l.ref)
		switch {
		case apierrors.IsNotFound(err):
			if why := l.notFound(); last != why.lack.Why {
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
				l.watchClaim(ctx, found, growths)
				return
			}
		}
		sleep(ctx, spread(b.upTo(maxUncachedWait)))
	}
}

// watchClaim polls a bound claim of a CSI volume, until ctx is done, because the claim and its
// volume may be resized. It polls at once when growths counts a change of the claim.
func (l *lookup) watchClaim(ctx context.Context, last *boundClaim, growths *watchable[map[types.NamespacedName]int]) {
	counts, countsChanged := growths.get()
	for last.volume.Spec.CSI != nil {
		check, before := time.After(spread(claimInterval)), counts[l.ref.NamespacedName]
		for waits := true; waits && counts[l.ref.NamespacedName] == before; {
			select {
			case <-check:
				waits = false
			case <-countsChanged:
				counts, countsChanged = growths.get()
			case <-ctx.Done():
				return
			}
		}
		claim, err := l.client.claimAlone(ctx, l.ref)
		if err != nil || claim.ResourceVersion == last.claim.ResourceVersion {
			continue
		}
		found, err := l.client.claim(ctx, l.ref)
		if err == nil && refs.UnboundReason(found.claim, found.volume) == "" {
			last = found
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
	bound, name := &boundClaim{claim: claim}, claim.Spec.VolumeName
	if name == "" || claim.Status.Phase != v1.ClaimBound {
		return bound, nil // NodeRestriction forbids reading the volume yet
	}
	volume := &v1.PersistentVolume{}
	switch err := c.do(ctx, c.core.Get().Resource("persistentvolumes").Name(name), volume); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		bound.volume = slim(volume)
	}
	return bound, nil
}
