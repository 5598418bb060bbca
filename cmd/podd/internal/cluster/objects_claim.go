package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/manifest"
)

// claim gets a claim and the volume that the cluster has bound to it, again until
// it has: a node may watch neither. What is bound stays so while a pod has it.
func (l *lookup) claim(ctx context.Context) {
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
				return
			}
		}
		sleep(ctx, spread(b.upTo(mostBlind)))
	}
}

// claim is without a volume where that is not there.
func (c *client) claim(ctx context.Context, ref manifest.ObjectRef) (*boundClaim, error) {
	f := &boundClaim{claim: &v1.PersistentVolumeClaim{}}
	if err := c.into(ctx, c.core.Get().Namespace(ref.Namespace).Resource("persistentvolumeclaims").Name(ref.Name), f.claim); err != nil {
		return nil, err
	}
	slim(f.claim)
	name := f.claim.Spec.VolumeName
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
