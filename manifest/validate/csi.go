package validate

import (
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
)

// CSIDriver validates a CSIDriver. The name must also be a valid name of a driver.
func CSIDriver(c *storage.CSIDriver) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateDriverName(c.Name, field.NewPath("metadata", "name"))
	errs = append(errs, validateOneOf(spec.Child("fsGroupPolicy"), *c.Spec.FSGroupPolicy,
		storage.ReadWriteOnceWithFSTypeFSGroupPolicy, storage.FileFSGroupPolicy, storage.NoneFSGroupPolicy)...)
	for i, mode := range c.Spec.VolumeLifecycleModes {
		errs = append(errs, validateOneOf(spec.Child("volumeLifecycleModes").Index(i), mode, storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral)...)
	}
	return errs
}

// validateCSI validates an inline volume of a CSI driver.
func validateCSI(s *v1.CSIVolumeSource, at *field.Path) field.ErrorList {
	errs := validateDriverName(s.Driver, at.Child("driver"))
	if ref := s.NodePublishSecretRef; ref != nil {
		errs = append(errs, validateObjectName(ref.Name, at.Child("nodePublishSecretRef", "name"))...)
	}
	return errs
}

// validateCSIVolume validates the source of a PersistentVolume that a CSI driver provides.
func validateCSIVolume(s *v1.CSIPersistentVolumeSource, at *field.Path) field.ErrorList {
	errs := validateDriverName(s.Driver, at.Child("driver"))
	switch handle := at.Child("volumeHandle"); {
	case s.VolumeHandle == "":
		errs = append(errs, field.Required(handle, "specify the ID that the driver has given the volume"))
	case len(s.VolumeHandle) > manifest.MaxVolumeHandle:
		errs = append(errs, field.TooLong(handle, "", manifest.MaxVolumeHandle))
	}
	errs = append(errs, forbidNUL(at.Child("volumeHandle"), s.VolumeHandle)...)
	errs = append(errs, validateSecretRef(s.NodeStageSecretRef, at.Child("nodeStageSecretRef"))...)
	errs = append(errs, validateSecretRef(s.NodePublishSecretRef, at.Child("nodePublishSecretRef"))...)
	return errs
}

// validateSecretRef validates the reference of a PersistentVolume to a Secret. ref may be nil.
func validateSecretRef(ref *v1.SecretReference, at *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := validateObjectName(ref.Name, at.Child("name"))
	if ref.Namespace == "" {
		return append(errs, field.Required(at.Child("namespace"), ""))
	}
	return append(errs, invalidErrors(at.Child("namespace"), ref.Namespace, validation.IsDNS1123Label(ref.Namespace))...)
}

// validateDriverName validates the name of a CSI driver, which becomes the name of a directory.
func validateDriverName(name string, at *field.Path) field.ErrorList {
	if manifest.IsSafeDriverName(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "must be a DNS name of at most 63 characters")}
}
