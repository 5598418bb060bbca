package validate

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/wording"
)

// Annotations that fields have replaced. They are still validated.
const (
	annotationTolerations  = "scheduler.alpha.kubernetes.io/tolerations"
	annotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// validatePodAnnotations validates the annotations that Kubernetes interprets, so that none
// of them contradicts a field.
func validatePodAnnotations(pod *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	annotationsPath := field.NewPath("metadata", "annotations")
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		value, annotationPath := pod.Annotations[key], annotationsPath.Key(key)
		container, isSeccomp := strings.CutPrefix(key, v1.SeccompContainerAnnotationKeyPrefix)
		switch {
		case key == annotationTolerations && value != "":
			errs = append(errs, validateTolerationAnnotation(value, annotationPath)...)
		case key == annotationDeletionCost && !isDeletionCost(value):
			errs = append(errs, field.Invalid(annotationPath, value, "must be a 32-bit integer"))
		case key == v1.SeccompPodAnnotationKey:
			errs = append(errs, validateSeccompAnnotation(value, pod.Spec.SecurityContext.SeccompProfile, annotationPath, field.NewPath("spec", "securityContext", "seccompProfile"))...)
		case isSeccomp:
			p, fieldPath := containerSeccomp(&pod.Spec, container)
			errs = append(errs, validateSeccompAnnotation(value, p, annotationPath, fieldPath)...)
		case strings.HasPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			errs = append(errs, validateAppArmorAnnotation(&pod.Spec, strings.TrimPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix), value, annotationPath)...)
		}
	}
	return errs
}

func validateTolerationAnnotation(text string, path *field.Path) field.ErrorList {
	var list []v1.Toleration
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return field.ErrorList{field.Invalid(path, wording.Clip(text, 80), "is not a list of tolerations in JSON; use spec.tolerations")}
	}
	return validateTolerations(list, path)
}

// isDeletionCost reports whether text is a valid deletion cost: a 32-bit integer without a plus
// sign or leading zeros.
func isDeletionCost(text string) bool {
	if text != "0" && strings.HasPrefix(text, "0") || strings.HasPrefix(text, "+") {
		return false
	}
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil
}

// containerSeccomp returns the seccomp profile in the field of a container, and the path of this
// field.
func containerSeccomp(spec *v1.PodSpec, name string) (*v1.SeccompProfile, *field.Path) {
	c, containerPath := findContainer(spec, name)
	if c == nil || c.SecurityContext == nil {
		return nil, nil
	}
	return c.SecurityContext.SeccompProfile, containerPath.Child("securityContext", "seccompProfile")
}

// validateSeccompAnnotation validates an annotation that Kubernetes used for seccomp profiles
// before 1.19. The annotation has no effect, but must not contradict p, the profile in a field. p
// may be nil. annotationPath is the path of the annotation, and fieldPath is the path of the field.
func validateSeccompAnnotation(text string, p *v1.SeccompProfile, annotationPath, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	localPath, isLocal := strings.CutPrefix(text, v1.SeccompLocalhostProfileNamePrefix)
	isRuntimeDefault := text == v1.SeccompProfileRuntimeDefault || text == v1.DeprecatedSeccompProfileDockerDefault
	switch {
	case isLocal && (path.IsAbs(localPath) || slices.Contains(strings.Split(localPath, "/"), "..")):
		errs = append(errs, field.Invalid(annotationPath, text, "must be a path below the profile directory"))
	case !isLocal && !isRuntimeDefault && text != v1.SeccompProfileNameUnconfined:
		errs = append(errs, field.Invalid(annotationPath, text, "is not a valid seccomp profile; use the field seccompProfile"))
	}
	if p == nil {
		return errs
	}
	matchesText := map[v1.SeccompProfileType]bool{
		v1.SeccompProfileTypeUnconfined:     text == v1.SeccompProfileNameUnconfined,
		v1.SeccompProfileTypeRuntimeDefault: isRuntimeDefault,
		v1.SeccompProfileTypeLocalhost:      isLocal,
	}
	const differs = "differs from the annotation; remove the annotation"
	if matches, ok := matchesText[p.Type]; ok && !matches {
		return append(errs, field.Forbidden(fieldPath.Child("type"), differs))
	}
	if p.Type == v1.SeccompProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile != localPath) {
		return append(errs, field.Forbidden(fieldPath.Child("localhostProfile"), differs))
	}
	return errs
}

// validateAppArmorAnnotation validates an annotation that Kubernetes used for AppArmor profiles
// before 1.30. The container must exist, text must be a valid profile, and the profile must be
// equal to the container's field if the field is set.
func validateAppArmorAnnotation(spec *v1.PodSpec, container, text string, annotationPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	c, containerPath := findContainer(spec, container)
	p := manifest.ParseAppArmorAnnotation(text)
	if c == nil {
		errs = append(errs, field.Invalid(annotationPath, container, "is not a container of this pod"))
	} else {
		fieldProfile := spec.SecurityContext.AppArmorProfile
		if c.SecurityContext != nil {
			fieldProfile = cmp.Or(c.SecurityContext.AppArmorProfile, fieldProfile)
		}
		errs = append(errs, compareAppArmor(p, fieldProfile, containerPath.Child("securityContext", "appArmorProfile"))...)
	}
	switch {
	case p == nil && text != "":
		errs = append(errs, field.Invalid(annotationPath, text, "is not a valid AppArmor profile; use the field appArmorProfile"))
	case p != nil && p.LocalhostProfile != nil:
		errs = append(errs, validateAppArmorName(*p.LocalhostProfile, annotationPath)...)
	}
	return errs
}

// findContainer returns the container with this name and its path.
func findContainer(spec *v1.PodSpec, name string) (*v1.Container, *field.Path) {
	for _, l := range containerLists(spec) {
		for i := range l.containers {
			if l.containers[i].Name == name {
				return &l.containers[i], l.path.Index(i)
			}
		}
	}
	return nil, nil
}

// containerList is one of a pod's lists of containers.
type containerList struct {
	containers []v1.Container
	path       *field.Path
}

func containerLists(spec *v1.PodSpec) []containerList {
	return []containerList{
		{spec.Containers, field.NewPath("spec", "containers")},
		{spec.InitContainers, field.NewPath("spec", "initContainers")},
	}
}

// validateFinalizers validates finalizers. podd ignores them, but an API server would refuse
// the mirror pod of a pod with an invalid finalizer.
func validateFinalizers(list []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range list {
		errs = append(errs, invalidErrors(at.Index(i), name, validation.IsQualifiedName(name))...)
		if !strings.Contains(name, "/") && name != string(v1.FinalizerKubernetes) && name != "orphan" && name != "foregroundDeletion" {
			errs = append(errs, field.Invalid(at.Index(i), name, "must have a domain, such as example.com/name"))
		}
	}
	return errs
}
