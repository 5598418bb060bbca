package validate

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/disk"
)

func volumesByName(volumes []v1.Volume) map[string]*v1.Volume {
	byName := map[string]*v1.Volume{}
	for i := range volumes {
		byName[volumes[i].Name] = &volumes[i]
	}
	return byName
}

func validateVolumes(spec *v1.PodSpec, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	volumes := spec.Volumes
	names := map[string]bool{}
	for i := range volumes {
		v, at := &volumes[i], fields.Index(i)
		errs = append(errs, validateName(v.Name, names, at.Child("name"))...)
		if countSources(&v.VolumeSource) > 1 {
			errs = append(errs, field.Forbidden(at, "has several sources; remove all but one"))
		}
		if v.EmptyDir != nil {
			errs = append(errs, validateEmptyDir(spec, v.EmptyDir, at.Child("emptyDir"))...)
		}
		if v.HostPath != nil {
			errs = append(errs, validateHostPath(v.HostPath, at.Child("hostPath"))...)
		}
		if v.NFS != nil {
			errs = append(errs, validateNFS(v.NFS, at.Child("nfs"))...)
		}
		errs = append(errs, validateDisk(v, at)...)
		if v.CSI != nil {
			errs = append(errs, validateCSI(v.CSI, at.Child("csi"))...)
		}
		errs = append(errs, validateVolumeFiles(v, at)...)
		errs = append(errs, validateClaimVolume(v, at)...)
		if v.Image != nil {
			errs = append(errs, validateImage(v.Image.Reference, at.Child("image", "reference"))...)
			errs = append(errs, validateOneOf(at.Child("image", "pullPolicy"), v.Image.PullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
		}
	}
	return errs
}

// maxInterfaceName is the kubelet's maximum length of the name of an iscsiadm interface.
const maxInterfaceName = 64

// validateDisk validates an iSCSI or Fibre Channel disk.
func validateDisk(v *v1.Volume, at *field.Path) field.ErrorList {
	switch {
	case v.ISCSI != nil:
		_, errs := disk.NewISCSI(disk.PersistentSource(v.ISCSI), at.Child("iscsi"))
		if v.ISCSI.InitiatorName != nil && len(v.Name+":"+v.ISCSI.TargetPortal) > maxInterfaceName { // the kubelet creates an interface with this name
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, fmt.Sprintf("with initiatorName, the name and the targetPortal together must have at most %d characters", maxInterfaceName-1)))
		}
		if ref := v.ISCSI.SecretRef; ref != nil {
			errs = append(errs, validateObjectName(ref.Name, at.Child("iscsi", "secretRef", "name"))...)
		}
		return errs
	case v.FC != nil:
		_, errs := disk.NewFC(v.FC, at.Child("fc"))
		return errs
	}
	return nil
}

// validateVolumeFiles validates a volume with files that podd writes.
func validateVolumeFiles(v *v1.Volume, at *field.Path) field.ErrorList {
	switch {
	case v.ConfigMap != nil:
		return validateConfigMapVolume(v.ConfigMap, at.Child("configMap"))
	case v.Secret != nil:
		return validateSecretVolume(v.Secret, at.Child("secret"))
	case v.DownwardAPI != nil:
		return validateDownwardVolume(v.DownwardAPI, at.Child("downwardAPI"))
	case v.Projected != nil:
		return validateProjected(v.Projected, at.Child("projected"))
	}
	return nil
}

// countSources returns the number of sources of a volume.
func countSources(s *v1.VolumeSource) int { return len(sourceNames(s)) }

// sourceNames returns the names of the sources that are set in a struct.
func sourceNames(s any) []string {
	var names []string
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

func validateEmptyDir(spec *v1.PodSpec, e *v1.EmptyDirVolumeSource, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := fields.Child("medium")
	if !manifest.IsHugePagesMedium(e.Medium) {
		errs = append(errs, validateOneOf(at, e.Medium, v1.StorageMediumDefault, v1.StorageMediumMemory, v1.StorageMediumHugePages, "HugePages-<size>")...)
	} else if _, err := manifest.HugePageSize(spec, e.Medium); err != nil {
		errs = append(errs, field.Invalid(at, string(e.Medium), err.Error()))
	}
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Invalid(fields.Child("sizeLimit"), e.SizeLimit.String(), "must not be negative"))
	}
	return errs
}

func validateHostPath(h *v1.HostPathVolumeSource, fields *field.Path) field.ErrorList {
	errs := validateHostDir(h.Path, fields.Child("path"))
	return append(errs, validateOneOf(fields.Child("type"), *h.Type,
		v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory, v1.HostPathFileOrCreate, v1.HostPathFile,
		v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev)...)
}
