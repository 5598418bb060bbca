package validate

import (
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func validateMounts(c *v1.Container, volumes map[string]*v1.Volume, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	mountPaths := map[string]bool{}
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], fields.Index(i)
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case volumes[m.Name] == nil:
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "is not in spec.volumes"))
		case slices.ContainsFunc(c.VolumeDevices, func(d v1.VolumeDevice) bool { return d.Name == m.Name }):
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "is also in volumeDevices; remove one"))
		}
		mountPath := at.Child("mountPath")
		errs = append(errs, forbidNUL(mountPath, m.MountPath)...)
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(mountPath, ""))
		case mountPaths[path.Clean("/"+m.MountPath)]:
			errs = append(errs, field.Duplicate(mountPath, m.MountPath))
		case slices.ContainsFunc(c.VolumeDevices, func(d v1.VolumeDevice) bool { return d.DevicePath == m.MountPath }):
			errs = append(errs, field.Invalid(mountPath, m.MountPath, "is also in volumeDevices; remove one"))
		}
		mountPaths[path.Clean("/"+m.MountPath)] = true
		errs = append(errs, validateSubPath(m, at)...)
		errs = append(errs, validatePropagation(c, m, at.Child("mountPropagation"))...)
		errs = append(errs, validateRecursiveReadOnly(m, at.Child("recursiveReadOnly"))...)
	}
	return errs
}

func validatePropagation(c *v1.Container, m *v1.VolumeMount, at *field.Path) field.ErrorList {
	if m.MountPropagation == nil {
		return nil
	}
	isPrivileged := c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false)
	if *m.MountPropagation == v1.MountPropagationBidirectional && !isPrivileged {
		return field.ErrorList{field.Forbidden(at, "Bidirectional requires a privileged container; use HostToContainer")}
	}
	return validateOneOf(at, *m.MountPropagation, v1.MountPropagationNone, v1.MountPropagationHostToContainer, v1.MountPropagationBidirectional)
}

func validateRecursiveReadOnly(m *v1.VolumeMount, at *field.Path) field.ErrorList {
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return nil
	}
	errs := validateOneOf(at, *m.RecursiveReadOnly, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled)
	if !m.ReadOnly {
		errs = append(errs, field.Forbidden(at, "requires readOnly: true"))
	}
	if m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone {
		errs = append(errs, field.Forbidden(at, "requires mountPropagation None"))
	}
	return errs
}

// validateSubPath validates the path within a volume. The expansion of a subPathExpr is validated
// later, when its variables are known.
func validateSubPath(m *v1.VolumeMount, at *field.Path) field.ErrorList {
	errs := validateLocalPath(m.SubPath, at.Child("subPath"))
	if m.SubPathExpr != "" && m.SubPath != "" {
		errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "cannot be combined with subPath; remove one"))
	}
	return append(errs, validateLocalPath(m.SubPathExpr, at.Child("subPathExpr"))...)
}

// validateLocalPath validates a relative path that must not lead out of its directory.
func validateLocalPath(text string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(text) {
		errs = append(errs, field.Invalid(at, text, "must not begin with /"))
	}
	return append(errs, forbidParent(text, at)...)
}

// forbidParent forbids the path element "..", which leads to the parent of a directory. It also
// forbids NUL bytes.
func forbidParent(text string, at *field.Path) field.ErrorList {
	errs := forbidNUL(at, text)
	if slices.Contains(strings.Split(text, "/"), "..") {
		errs = append(errs, field.Invalid(at, text, "must not contain .."))
	}
	return errs
}
