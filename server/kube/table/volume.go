package table

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func volumeColumns() []metav1.TableColumnDefinition {
	spec, status := v1.PersistentVolumeSpec{}, v1.PersistentVolumeStatus{}
	return []metav1.TableColumnDefinition{
		nameColumn(),
		newColumn("Capacity", fieldDescription(spec, "capacity")),
		newColumn("Access Modes", fieldDescription(spec, "accessModes")),
		newColumn("Reclaim Policy", fieldDescription(spec, "persistentVolumeReclaimPolicy")),
		newColumn("Status", fieldDescription(status, "phase")),
		newColumn("Claim", fieldDescription(spec, "claimRef")),
		newColumn("StorageClass", fieldDescription(spec, "storageClassName")),
		newColumn("VolumeAttributesClass", fieldDescription(spec, "volumeAttributesClassName")),
		newColumn("Reason", fieldDescription(status, "reason")),
		ageColumn(),
		newWideColumn("VolumeMode", fieldDescription(spec, "volumeMode")),
	}
}

func volumeCells(v *v1.PersistentVolume, now time.Time) []any {
	claim := ""
	if r := v.Spec.ClaimRef; r != nil {
		claim = r.Namespace + "/" + r.Name
	}
	return []any{
		v.Name, v.Spec.Capacity.Storage().String(), accessModes(v.Spec.AccessModes),
		string(v.Spec.PersistentVolumeReclaimPolicy), storagePhase(v, string(v.Status.Phase)), claim,
		storageClass(v, v.Spec.StorageClassName), valueOrUnset(v.Spec.VolumeAttributesClassName),
		v.Status.Reason, ageOf(v, now), valueOrUnset(v.Spec.VolumeMode),
	}
}

func claimColumns() []metav1.TableColumnDefinition {
	spec, status := v1.PersistentVolumeClaimSpec{}, v1.PersistentVolumeClaimStatus{}
	return []metav1.TableColumnDefinition{
		nameColumn(),
		newColumn("Status", fieldDescription(status, "phase")),
		newColumn("Volume", fieldDescription(spec, "volumeName")),
		newColumn("Capacity", fieldDescription(status, "capacity")),
		newColumn("Access Modes", fieldDescription(status, "accessModes")),
		newColumn("StorageClass", fieldDescription(spec, "storageClassName")),
		newColumn("VolumeAttributesClass", fieldDescription(spec, "volumeAttributesClassName")),
		ageColumn(),
		newWideColumn("VolumeMode", fieldDescription(spec, "volumeMode")),
	}
}

// claimCells shows the capacity and the access modes only if the claim is bound to
// a volume.
func claimCells(c *v1.PersistentVolumeClaim, now time.Time) []any {
	capacity, modes, class := "", "", ""
	if c.Spec.VolumeName != "" {
		capacity, modes = c.Status.Capacity.Storage().String(), accessModes(c.Status.AccessModes)
	}
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	return []any{
		c.Name, storagePhase(c, string(c.Status.Phase)), c.Spec.VolumeName, capacity, modes,
		storageClass(c, class), valueOrUnset(c.Spec.VolumeAttributesClassName), ageOf(c, now), valueOrUnset(c.Spec.VolumeMode),
	}
}

func storagePhase(o metav1.Object, phase string) string {
	if o.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return phase
}

// storageClass returns the storage class of a volume or claim: the value of the beta annotation or,
// if there is none, the parameter class.
func storageClass(o metav1.Object, class string) string {
	if c, ok := o.GetAnnotations()[v1.BetaStorageClassAnnotation]; ok {
		return c
	}
	return class
}

func valueOrUnset[S ~string](s *S) string {
	if s == nil {
		return unset
	}
	return string(*s)
}

// accessModes returns the abbreviated modes without duplicates, in kubectl's order.
func accessModes(modes []v1.PersistentVolumeAccessMode) string {
	var abbreviations []string
	for _, m := range []struct {
		mode         v1.PersistentVolumeAccessMode
		abbreviation string
	}{
		{v1.ReadWriteOnce, "RWO"}, {v1.ReadOnlyMany, "ROX"}, {v1.ReadWriteMany, "RWX"}, {v1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			abbreviations = append(abbreviations, m.abbreviation)
		}
	}
	return strings.Join(abbreviations, ",")
}
