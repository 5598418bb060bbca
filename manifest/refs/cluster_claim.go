package refs

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/intree"
)

// claimProblem returns the reason why a pod cannot use an existing claim of the cluster, or "".
func (o *lookup) claimProblem(p *manifest.Pod, u Ref, node *manifest.Node) string {
	c := o.Claims[u.Object.NamespacedName]
	pv := o.Volumes[types.NamespacedName{Name: c.Spec.VolumeName}]
	if reason := UnboundReason(c, pv); reason != "" {
		return reason
	}
	if _, err := intree.TranslateVolume(pv); err != nil { // a translated volume has the source csi, which causes no error
		return err.Error()
	}
	if a := pv.Spec.NodeAffinity; a != nil && node != nil && !manifest.SelectsNode(a.Required, p.Object.Spec.NodeName, node.Labels) {
		return fmt.Sprintf("the nodeAffinity of PersistentVolume %q does not match the labels of this node", pv.Name)
	}
	if v := u.volumeOf(p.Object); u.Object.Name == EphemeralClaimName(p.Object, v) && isEphemeral(p.Object, v) && !metav1.IsControlledBy(c, p.Object) {
		return fmt.Sprintf("PVC %s/%s was not created for pod %s (pod is not owner)", c.Namespace, c.Name, p.Key)
	}
	if misuse := findVolumeModeMisuse(p, &Claim{PersistentVolumeClaim: c, Volume: pv}); misuse != "" {
		return fmt.Sprintf("PersistentVolumeClaim %q %s", c.Name, misuse)
	}
	return ""
}

func isEphemeral(pod *v1.Pod, volume string) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == volume {
			return v.Ephemeral != nil
		}
	}
	return false
}

// claimProtectionFinalizer is the finalizer with which Kubernetes keeps a deleted claim until no
// pod uses it.
const claimProtectionFinalizer = "kubernetes.io/pvc-protection"

// UnboundReason returns the reason why a claim of a cluster is not bound to pv; "" if it is
// bound. pv is the volume that the claim names; nil if it does not exist. Only the cluster binds
// such claims.
func UnboundReason(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) string {
	claim := c.Namespace + "/" + c.Name
	switch {
	case c.DeletionTimestamp != nil && !slices.Contains(c.Finalizers, claimProtectionFinalizer):
		return fmt.Sprintf("can't start pod because PVC %s is being deleted", claim)
	case c.Status.Phase != v1.ClaimBound || c.Spec.VolumeName == "":
		return fmt.Sprintf("PVC %s has non-bound phase (%q) or empty pvc.Spec.VolumeName (%q)", claim, c.Status.Phase, c.Spec.VolumeName)
	case pv == nil:
		return fmt.Sprintf("persistentvolume %q not found", c.Spec.VolumeName)
	case pv.Spec.ClaimRef == nil:
		return fmt.Sprintf("the PersistentVolume %q has no claimRef, so it is not bound to PVC %s yet", pv.Name, claim)
	case pv.Spec.ClaimRef.UID != c.UID:
		return fmt.Sprintf("the PersistentVolume %q is bound to another claim than PVC %s", pv.Name, claim)
	}
	return ""
}
