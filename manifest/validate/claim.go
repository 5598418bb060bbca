package validate

import (
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/disk"
)

// Claim validates a PersistentVolumeClaim, except its metadata.
func Claim(c *v1.PersistentVolumeClaim) field.ErrorList {
	return validateClaim(&c.Spec, field.NewPath("spec"))
}

// PersistentVolume validates a PersistentVolume, except its metadata.
func PersistentVolume(pv *v1.PersistentVolume) field.ErrorList {
	return validatePersistentVolume(&pv.Spec, field.NewPath("spec"))
}

// validateClaim validates the spec of a claim, or of a claim template.
func validateClaim(spec *v1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	errs := validateAccessModes(spec.AccessModes, at.Child("accessModes"))
	errs = append(errs, validateStorage(spec.Resources.Requests, at.Child("resources", "requests"))...)
	errs = append(errs, validateOneOf(at.Child("volumeMode"), *spec.VolumeMode, v1.PersistentVolumeFilesystem, v1.PersistentVolumeBlock)...)
	if spec.StorageClassName != nil && *spec.StorageClassName != "" {
		errs = append(errs, invalidErrors(at.Child("storageClassName"), *spec.StorageClassName, validation.IsDNS1123Subdomain(*spec.StorageClassName))...)
	}
	if spec.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
			errs = append(errs, field.Invalid(at.Child("selector"), "", err.Error()))
		}
	}
	return errs
}

func validateAccessModes(modes []v1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(at, "specify a mode such as ReadWriteOnce")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, validateOneOf(at.Index(i), mode, v1.ReadWriteOnce, v1.ReadOnlyMany, v1.ReadWriteMany, v1.ReadWriteOncePod)...)
	}
	if len(modes) > 1 && slices.Contains(modes, v1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(at, "ReadWriteOncePod cannot be combined with other modes"))
	}
	return errs
}

func validateStorage(r v1.ResourceList, at *field.Path) field.ErrorList {
	q, isSet := r[v1.ResourceStorage]
	switch at = at.Key(string(v1.ResourceStorage)); {
	case !isSet:
		return field.ErrorList{field.Required(at, "")}
	case q.Sign() <= 0:
		return field.ErrorList{field.Invalid(at, q.String(), "must be greater than 0")}
	}
	return nil
}

func validatePersistentVolume(spec *v1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := validateAccessModes(spec.AccessModes, at.Child("accessModes"))
	errs = append(errs, validateStorage(spec.Capacity, at.Child("capacity"))...)
	errs = append(errs, validateOneOf(at.Child("volumeMode"), *spec.VolumeMode, v1.PersistentVolumeFilesystem, v1.PersistentVolumeBlock)...)
	s := &spec.PersistentVolumeSource
	if *spec.VolumeMode == v1.PersistentVolumeBlock && (s.HostPath != nil || s.NFS != nil) {
		errs = append(errs, field.Forbidden(at.Child("volumeMode"), "Block is not supported for hostPath and nfs volumes; for a device of the host, set local.path to the device"))
	}
	switch {
	case s.HostPath != nil:
		errs = append(errs, validateHostPath(s.HostPath, at.Child("hostPath"))...)
	case s.Local != nil:
		errs = append(errs, validateHostDir(s.Local.Path, at.Child("local", "path"))...)
	case s.NFS != nil:
		errs = append(errs, validateNFS(s.NFS, at.Child("nfs"))...)
	case s.CSI != nil:
		errs = append(errs, validateCSIVolume(s.CSI, at.Child("csi"))...)
	case s.ISCSI != nil:
		_, diskErrs := disk.NewISCSI(s.ISCSI, at.Child("iscsi"))
		errs = append(errs, diskErrs...)
		errs = append(errs, validateCHAPSecret(s.ISCSI.SecretRef, at.Child("iscsi", "secretRef"))...)
	case s.FC != nil:
		_, diskErrs := disk.NewFC(s.FC, at.Child("fc"))
		errs = append(errs, diskErrs...)
	case len(sourceNames(s)) == 0: // no supported source is set; package supported refuses all other sources
		errs = append(errs, field.Required(at, "specify hostPath, local, nfs, iscsi, fc or csi"))
	}
	if names := sourceNames(s); len(names) > 1 {
		errs = append(errs, field.Forbidden(at.Child(names[1]), "a volume has one source, but "+names[0]+" is also set; remove one"))
	}
	if a := spec.NodeAffinity; a != nil {
		errs = append(errs, validateNodeSelector(a.Required, at.Child("nodeAffinity", "required"))...)
	}
	errs = append(errs, validateMountOptions(spec, at.Child("mountOptions"))...)
	if policy := spec.PersistentVolumeReclaimPolicy; policy != "" {
		errs = append(errs, validateOneOf(at.Child("persistentVolumeReclaimPolicy"), policy,
			v1.PersistentVolumeReclaimRetain, v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle)...)
	}
	return errs
}

// validateCHAPSecret validates the reference of an iSCSI PersistentVolume to a Secret. An empty namespace
// means the namespace of the pod. ref may be nil.
func validateCHAPSecret(ref *v1.SecretReference, at *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := validateObjectName(ref.Name, at.Child("name"))
	if ref.Namespace != "" {
		errs = append(errs, invalidErrors(at.Child("namespace"), ref.Namespace, validation.IsDNS1123Label(ref.Namespace))...)
	}
	return errs
}

func validateHostDir(text string, at *field.Path) field.ErrorList {
	errs := forbidNUL(at, text)
	switch {
	case text == "":
		errs = append(errs, field.Required(at, ""))
	case !path.IsAbs(text):
		errs = append(errs, field.Invalid(at, text, "must begin with /"))
	case slices.Contains(strings.Split(text, "/"), ".."):
		errs = append(errs, field.Invalid(at, text, "must not contain .."))
	}
	return errs
}

// validateClaimVolume validates a pod's volume that refers to a claim.
func validateClaimVolume(v *v1.Volume, at *field.Path) field.ErrorList {
	if s := v.PersistentVolumeClaim; s != nil {
		return validateObjectName(s.ClaimName, at.Child("persistentVolumeClaim", "claimName"))
	}
	if v.Ephemeral == nil {
		return nil
	}
	at = at.Child("ephemeral", "volumeClaimTemplate")
	t := v.Ephemeral.VolumeClaimTemplate
	if t == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateLabels(t.Labels, at.Child("metadata", "labels"))
	errs = append(errs, validateAnnotations(t.Annotations, at.Child("metadata", "annotations"))...)
	errs = append(errs, validateClaim(&t.Spec, at.Child("spec"))...)
	return errs
}
