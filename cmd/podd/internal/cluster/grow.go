package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/volume/csi"
)

// resizeConditions are those of a claim that its growing has set.
var resizeConditions = []v1.PersistentVolumeClaimConditionType{
	v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending,
	v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError,
}

// tellGrowth tells the cluster of claims whose volumes have grown here, until ctx is
// done: that ends their growing. It is told, too, of those that drivers do not let grow,
// so that a controller may have them grow to less.
func (c *Cluster) tellGrowth(ctx context.Context, api *client) {
	b, told := backoff{}, map[types.NamespacedName]int{}
	for {
		grown, otherGrown := c.o.CSI.Grown()
		objects, otherObjects := c.objects.get()
		var again <-chan time.Time
		for i := range grown {
			claim, patch := grownClaim(&objects, &grown[i], time.Now())
			if patch == nil {
				continue
			}
			q := api.core.Patch(types.StrategicMergePatchType).Namespace(claim.Namespace).Resource("persistentvolumeclaims").
				Name(claim.Name).SubResource("status").Body(patch)
			err := api.into(ctx, q, &v1.PersistentVolumeClaim{})
			if err == nil || apierrors.IsConflict(err) { // either way there is a newer one
				told = maps.Clone(told)
				told[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}]++
				c.grew.set(told)
			} else if again == nil {
				again = time.After(spread(b.upTo(mostKnown)))
			}
		}
		if again == nil {
			b = backoff{}
		} else {
			otherObjects = nil
		}
		select {
		case <-otherGrown:
		case <-otherObjects:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// grownClaim is a claim whose volume has grown as far as it was to, or has not, with a
// patch of its status that says so; nil where there is nothing to say. What somebody
// else has written since is not written over.
func grownClaim(o *manifest.Objects, g *csi.Growth, now time.Time) (*v1.PersistentVolumeClaim, []byte) {
	pv := o.Volumes[types.NamespacedName{Name: g.Volume}]
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.CSI == nil || (csi.Use{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle}) != g.Use {
		return nil, nil
	}
	claim := o.Claims[types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}]
	if claim == nil || manifest.Unbound(claim, pv) != "" {
		return nil, nil
	}
	to, grows := manifest.Growth(claim, pv)
	var status map[string]any
	switch {
	case !grows || g.Capacity < to.Value():
	case g.Failed == nil:
		status = grownStatus(claim, to)
	case g.Capacity == to.Value():
		status = failedStatus(claim, to, g.Failed, now)
	}
	if len(status) == 0 {
		return nil, nil
	}
	return claim, []byte(text(map[string]any{"metadata": map[string]any{"resourceVersion": claim.ResourceVersion}, "status": status}))
}

// grownStatus is what ends the growing of a claim.
func grownStatus(claim *v1.PersistentVolumeClaim, to resource.Quantity) map[string]any {
	status := map[string]any{"capacity": map[string]any{"storage": to.String()}}
	if claim.Status.AllocatedResourceStatuses != nil {
		status["allocatedResourceStatuses"] = map[string]any{"storage": nil}
	}
	gone := []any{}
	for _, have := range claim.Status.Conditions {
		for _, kind := range resizeConditions {
			if have.Type == kind {
				gone = append(gone, map[string]any{"$patch": "delete", "type": kind})
			}
		}
	}
	if len(gone) > 0 {
		status["conditions"] = gone
	}
	return status
}

// failedStatus tells of a growth that failed what the kubelet does: an error, which
// stays as it is while there is one, and that it is infeasible where the driver says so,
// or where it failed more than once and somebody wants another size by now. A controller
// of old, which tells no step, is told nothing.
func failedStatus(claim *v1.PersistentVolumeClaim, to resource.Quantity, f *csi.GrowthFailure, now time.Time) map[string]any {
	if claim.Status.AllocatedResourceStatuses[v1.ResourceStorage] == "" {
		return nil
	}
	status := map[string]any{}
	wanted := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if f.Infeasible || f.Again && wanted.Cmp(to) != 0 {
		status["allocatedResourceStatuses"] = map[string]any{"storage": v1.PersistentVolumeClaimNodeResizeInfeasible}
	}
	known := slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1.PersistentVolumeClaimNodeResizeError && c.Status == v1.ConditionTrue
	})
	if !known {
		status["conditions"] = []any{v1.PersistentVolumeClaimCondition{
			Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now), Message: f.Message,
		}}
	}
	return status
}
