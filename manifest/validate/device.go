package validate

import (
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/supported"
)

// validateDevices validates the volumes that a container uses as block devices.
func validateDevices(c *v1.Container, hostUsers bool, volumes map[string]*v1.Volume, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.VolumeDevices) > 0 && !hostUsers {
		errs = append(errs, field.Forbidden(fields, "block devices cannot be used with hostUsers: false, because the owner of the device has no ID in the user namespace; remove one of the two fields"))
	}
	names, paths := map[string]bool{}, map[string]bool{}
	for i := range c.VolumeDevices {
		d, at := &c.VolumeDevices[i], fields.Index(i)
		errs = append(errs, validateDeviceName(c, d.Name, volumes, names, at.Child("name"))...)
		devicePath := at.Child("devicePath")
		errs = append(errs, forbidNUL(devicePath, d.DevicePath)...)
		switch {
		case d.DevicePath == "":
			errs = append(errs, field.Required(devicePath, "specify the path of the device in the container"))
		case slices.Contains(strings.Split(d.DevicePath, "/"), ".."):
			errs = append(errs, field.Invalid(devicePath, d.DevicePath, "must not contain .."))
		case paths[path.Clean("/"+d.DevicePath)]:
			errs = append(errs, field.Duplicate(devicePath, d.DevicePath))
		case slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath == d.DevicePath }):
			errs = append(errs, field.Invalid(devicePath, d.DevicePath, "is also in volumeMounts; remove one"))
		}
		paths[path.Clean("/"+d.DevicePath)] = true
	}
	return errs
}

func validateDeviceName(c *v1.Container, name string, volumes map[string]*v1.Volume, usedNames map[string]bool, at *field.Path) field.ErrorList {
	v := volumes[name]
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case usedNames[name]:
		return field.ErrorList{field.Duplicate(at, name)}
	case v == nil:
		return field.ErrorList{field.Invalid(at, name, "is not in spec.volumes")}
	case v.Ephemeral != nil && !isBlockTemplate(v.Ephemeral.VolumeClaimTemplate): // the claim template of a block volume is valid only in a cluster, which creates the claim; for other sources package supported refuses it
		return field.ErrorList{field.Invalid(at, name, supported.EphemeralDirectory)}
	case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
		return field.ErrorList{field.Invalid(at, name, "is not a persistentVolumeClaim, and other volumes are not block devices; use volumeMounts")}
	case slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == name }):
		return field.ErrorList{field.Invalid(at, name, "is also in volumeMounts; remove one")}
	}
	usedNames[name] = true
	return nil
}

func isBlockTemplate(t *v1.PersistentVolumeClaimTemplate) bool {
	return t != nil && t.Spec.VolumeMode != nil && *t.Spec.VolumeMode == v1.PersistentVolumeBlock
}
