package objects

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest/intree"
	"podd/manifest/refs"
)

// claimInterval is the interval between reads of a bound claim of a CSI volume. podd reads the
// claim repeatedly, because the volume may be resized. The kubelet's interval is similar.
const claimInterval = 90 * time.Second

// pollClaim polls a claim until it is bound, and sends the claim and its volume when they change.
// It does not watch them, because a node may not watch claims and volumes. When the claim is bound,
// pollClaim calls pollBoundClaim and returns, because a bound claim stays bound.
func (l *lookup) pollClaim(ctx context.Context, claimUpdates *watchable.Value[map[types.NamespacedName]int]) {
	b, startedAt, lastReason := backoff.Backoff{InitialWait: firstLookupWait}, time.Now(), ""
	for ctx.Err() == nil {
		bound, err := l.getClaimAndVolume(ctx)
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
		backoff.Sleep(ctx, backoff.WithJitter(b.NextUpTo(apiserver.MaxUncachedWait)))
	}
}

// pollBoundClaim polls a bound claim of a CSI volume until ctx is done, because the claim and its
// volume may be resized. It also polls immediately after podd has updated the status of the claim,
// which increases the count in claimUpdates. For a volume without CSI it returns at once.
func (l *lookup) pollBoundClaim(ctx context.Context, last *boundClaim, claimUpdates *watchable.Value[map[types.NamespacedName]int]) {
	counts, countsChanged := claimUpdates.Get()
	for last.volume.Spec.CSI != nil {
		check, previousCount := time.After(backoff.WithJitter(claimInterval)), counts[l.ref.NamespacedName]
		for mustWait := true; mustWait && counts[l.ref.NamespacedName] == previousCount; {
			select {
			case <-check:
				mustWait = false
			case <-countsChanged:
				counts, countsChanged = claimUpdates.Get()
			case <-ctx.Done():
				return
			}
		}
		claim, err := l.getClaim(ctx)
		if err != nil || claim.ResourceVersion == last.claim.ResourceVersion {
			continue
		}
		bound, err := l.getClaimAndVolume(ctx)
		if err == nil && refs.UnboundReason(bound.claim, bound.volume) == "" {
			last = bound
			l.send(ctx, lookupResult{object: bound})
		}
	}
}

// getClaim returns the claim that l looks up.
func (l *lookup) getClaim(ctx context.Context) (*v1.PersistentVolumeClaim, error) {
	claim := &v1.PersistentVolumeClaim{}
	err := l.client.Do(ctx, l.client.Core.Get().Namespace(l.ref.Namespace).Resource("persistentvolumeclaims").Name(l.ref.Name), claim)
	return apiserver.DropUnusedFields(claim), err
}

// getClaimAndVolume returns the claim that l looks up and, if the claim is bound, its volume.
func (l *lookup) getClaimAndVolume(ctx context.Context) (*boundClaim, error) {
	claim, err := l.getClaim(ctx)
	if err != nil {
		return nil, err
	}
	bound, name := &boundClaim{claim: claim}, claim.Spec.VolumeName
	if name == "" || claim.Status.Phase != v1.ClaimBound {
		return bound, nil // without the volume, because NodeRestriction does not permit reading it yet
	}
	volume := &v1.PersistentVolume{}
	switch err := l.client.Do(ctx, l.client.Core.Get().Resource("persistentvolumes").Name(name), volume); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		bound.volume = apiserver.DropUnusedFields(volume)
		if translated, err := intree.TranslateVolume(volume); err == nil { // package refs reports the error
			bound.volume = translated
		}
	}
	return bound, nil
}
