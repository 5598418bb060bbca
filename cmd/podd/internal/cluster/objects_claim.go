package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/intree"
	"podd/manifest/refs"
)

// claimInterval is the interval between reads of a bound claim of a CSI volume. podd reads the
// claim repeatedly, because the volume may be resized. The kubelet's interval is similar.
const claimInterval = 90 * time.Second

// pollClaim polls a claim until it is bound, and sends the claim and its volume when they change.
// It does not watch them, because a node may not watch claims and volumes. When the claim is bound,
// pollClaim calls pollBoundClaim and returns, because a bound claim stays bound.
func (l *lookup) pollClaim(ctx context.Context, claimUpdates *watchable[map[types.NamespacedName]int]) {
	b, startedAt, lastReason := backoff{initialWait: firstLookupWait}, time.Now(), ""
	for ctx.Err() == nil {
		bound, err := l.client.getClaimAndVolume(ctx, l.ref)
		switch {
		case apierrors.IsNotFound(err):
			if result := l.notFound(); lastReason != result.missing.Message {
				lastReason = result.missing.Message
				l.send(ctx, result)
			}
		case err != nil:
			l.reportError(ctx, err, startedAt)
		default:
			reason := refs.UnboundReason(bound.claim, bound.volume)
			if reason == "" || reason != lastReason {
				lastReason = reason
				l.send(ctx, lookupResult{object: bound})
			}
			if reason == "" {
				l.pollBoundClaim(ctx, bound, claimUpdates)
				return
			}
		}
		sleep(ctx, withJitter(b.nextUpTo(maxUncachedWait)))
	}
}

// pollBoundClaim polls a bound claim of a CSI volume until ctx is done, because the claim and its
// volume may be resized. It also polls immediately after podd has updated the status of the claim,
// which increases the count in claimUpdates. For a volume without CSI it returns at once.
func (l *lookup) pollBoundClaim(ctx context.Context, last *boundClaim, claimUpdates *watchable[map[types.NamespacedName]int]) {
	counts, countsChanged := claimUpdates.get()
	for last.volume.Spec.CSI != nil {
		check, previousCount := time.After(withJitter(claimInterval)), counts[l.ref.NamespacedName]
		for mustWait := true; mustWait && counts[l.ref.NamespacedName] == previousCount; {
			select {
			case <-check:
				mustWait = false
			case <-countsChanged:
				counts, countsChanged = claimUpdates.get()
			case <-ctx.Done():
				return
			}
		}
		claim, err := l.client.getClaim(ctx, l.ref)
		if err != nil || claim.ResourceVersion == last.claim.ResourceVersion {
			continue
		}
		bound, err := l.client.getClaimAndVolume(ctx, l.ref)
		if err == nil && refs.UnboundReason(bound.claim, bound.volume) == "" {
			last = bound
			l.send(ctx, lookupResult{object: bound})
		}
	}
}

// getClaim returns the claim that ref names.
func (c *client) getClaim(ctx context.Context, ref manifest.ObjectRef) (*v1.PersistentVolumeClaim, error) {
	claim := &v1.PersistentVolumeClaim{}
	err := c.do(ctx, c.core.Get().Namespace(ref.Namespace).Resource("persistentvolumeclaims").Name(ref.Name), claim)
	return dropUnusedFields(claim), err
}

// getClaimAndVolume returns the claim that ref names and, if the claim is bound, its volume.
func (c *client) getClaimAndVolume(ctx context.Context, ref manifest.ObjectRef) (*boundClaim, error) {
	claim, err := c.getClaim(ctx, ref)
	if err != nil {
		return nil, err
	}
	bound, name := &boundClaim{claim: claim}, claim.Spec.VolumeName
	if name == "" || claim.Status.Phase != v1.ClaimBound {
		return bound, nil // without the volume, because NodeRestriction does not permit reading it yet
	}
	volume := &v1.PersistentVolume{}
	switch err := c.do(ctx, c.core.Get().Resource("persistentvolumes").Name(name), volume); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		bound.volume = dropUnusedFields(volume)
		if translated, err := intree.TranslateVolume(volume); err == nil { // package refs reports the error
			bound.volume = translated
		}
	}
	return bound, nil
}
