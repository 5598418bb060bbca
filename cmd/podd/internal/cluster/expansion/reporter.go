// Package expansion reports the expansions of volumes on this node in the status of their
// PersistentVolumeClaims, as the kubelet does.
package expansion

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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/mergepatch"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// resizeConditions are the conditions of a claim that report the progress of a resize.
var resizeConditions = []v1.PersistentVolumeClaimConditionType{
	v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending,
	v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError,
}

// A Reporter updates the status of PersistentVolumeClaims after their volumes were expanded on
// this node. It also reports failed expansions, so that the resize controller can try a smaller size.
type Reporter struct {
	Client  *apiserver.Client
	Volumes Volumes
	// Objects returns the claims and volumes of the bound pods, and a channel that is closed when they
	// change.
	Objects func() (manifest.Objects, <-chan struct{})
	// ClaimUpdates maps each PersistentVolumeClaim to the number of times that the Reporter has updated the
	// status of the claim. The count begins again with each Reporter, which means with each connection.
	ClaimUpdates *watchable.Value[map[types.NamespacedName]int]
}

// Volumes provides the expansions of volumes on this node.
type Volumes interface {
	// Expansions returns the successful and failed expansions, and a channel that is closed when the list
	// changes.
	Expansions() ([]csi.Expansion, <-chan struct{})
}

// Run reports expansions until ctx is done.
func (r *Reporter) Run(ctx context.Context) {
	b, updates := backoff.Backoff{}, map[types.NamespacedName]int{}
	for {
		expansions, expansionsChanged := r.Volumes.Expansions()
		objects, objectsChanged := r.Objects()
		var retry <-chan time.Time
		for i := range expansions {
			claim, patch := claimExpansionPatch(&objects, &expansions[i], time.Now())
			if patch == nil {
				continue
			}
			q := r.Client.Core.Patch(types.StrategicMergePatchType).Namespace(claim.Namespace).Resource("persistentvolumeclaims").
				Name(claim.Name).SubResource("status").Body(patch)
			err := r.Client.Do(ctx, q, &v1.PersistentVolumeClaim{})
			// Read the claim again after a success or a conflict, because the API server then has a
			// newer version of it.
			if err == nil || apierrors.IsConflict(err) {
				updates = maps.Clone(updates)
				updates[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}]++
				r.ClaimUpdates.Set(updates)
			} else if retry == nil {
				retry = time.After(backoff.WithJitter(b.NextUpTo(apiserver.MaxCachedWait)))
			}
		}
		if retry == nil {
			b = backoff.Backoff{}
		} else {
			objectsChanged = nil
		}
		select {
		case <-expansionsChanged:
		case <-objectsChanged:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// claimExpansionPatch returns the claim of an expanded volume and a patch of the claim's status.
// The patch is nil if the status is up to date. The API server rejects the patch with a conflict if
// the claim has changed in the meantime.
func claimExpansionPatch(o *manifest.Objects, e *csi.Expansion, now time.Time) (claim *v1.PersistentVolumeClaim, patch []byte) {
	pv := o.Volumes[types.NamespacedName{Name: e.Volume}]
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.CSI == nil || (csi.VolumeID{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle}) != e.VolumeID {
		return nil, nil
	}
	claim = o.Claims[types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}]
	if claim == nil || refs.UnboundReason(claim, pv) != "" {
		return nil, nil
	}
	newSize, needsExpansion := refs.ExpansionSize(claim, pv)
	var status map[string]any
	switch {
	case !needsExpansion || e.Capacity < newSize.Value():
	case e.Failure == nil:
		status = expandedStatusPatch(claim, newSize)
	case e.Capacity == newSize.Value():
		status = failedStatusPatch(claim, newSize, e.Failure, now)
	}
	if len(status) == 0 {
		return nil, nil
	}
	return claim, []byte(mergepatch.Encode(map[string]any{"metadata": map[string]any{"resourceVersion": claim.ResourceVersion}, "status": status}))
}

// expandedStatusPatch returns a patch of the claim's status that reports a completed resize.
// newSize is the new size of the volume.
func expandedStatusPatch(claim *v1.PersistentVolumeClaim, newSize resource.Quantity) map[string]any {
	status := map[string]any{"capacity": map[string]any{"storage": newSize.String()}}
	if claim.Status.AllocatedResourceStatuses != nil {
		status["allocatedResourceStatuses"] = map[string]any{"storage": nil}
	}
	deletions := []any{}
	for _, condition := range claim.Status.Conditions {
		for _, kind := range resizeConditions {
			if condition.Type == kind {
				deletions = append(deletions, map[string]any{"$patch": "delete", "type": kind})
			}
		}
	}
	if len(deletions) > 0 {
		status["conditions"] = deletions
	}
	return status
}

// failedStatusPatch returns a patch of the claim's status that reports a failed expansion as the
// kubelet does. The patch adds a condition unless the claim already has it. It also sets
// NodeResizeInfeasible in two cases: if the driver reports that the size is infeasible, or if the
// expansion has failed more than once and the claim now requests another size. failedStatusPatch
// returns nil if the controller does not use allocatedResourceStatuses.
func failedStatusPatch(claim *v1.PersistentVolumeClaim, newSize resource.Quantity, f *csi.ExpansionFailure, now time.Time) map[string]any {
	if claim.Status.AllocatedResourceStatuses[v1.ResourceStorage] == "" {
		return nil
	}
	status := map[string]any{}
	requested := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if f.IsInfeasible || f.IsRepeated && requested.Cmp(newSize) != 0 {
		status["allocatedResourceStatuses"] = map[string]any{"storage": v1.PersistentVolumeClaimNodeResizeInfeasible}
	}
	hasCondition := slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1.PersistentVolumeClaimNodeResizeError && c.Status == v1.ConditionTrue
	})
	if !hasCondition {
		status["conditions"] = []any{v1.PersistentVolumeClaimCondition{
			Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now), Message: f.Message,
		}}
	}
	return status
}
