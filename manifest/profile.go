package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// SeccompProfile returns a container's seccomp profile: its own or else the pod's; nil if
// there is none.
func SeccompProfile(spec *v1.PodSpec, c *v1.Container) *v1.SeccompProfile {
	if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		return sc.SeccompProfile
	}
	if sc := spec.SecurityContext; sc != nil {
		return sc.SeccompProfile
	}
	return nil
}

// LocalSeccomp returns the file of a container's seccomp profile, relative to the node's
// profile directory. ok is false if the profile is not in a file.
func LocalSeccomp(spec *v1.PodSpec, c *v1.Container) (file string, ok bool) {
	p := SeccompProfile(spec, c)
	if p == nil || p.Type != v1.SeccompProfileTypeLocalhost {
		return "", false
	}
	if p.LocalhostProfile != nil {
		file = *p.LocalhostProfile
	}
	return file, true
}

// NeedsFiles reports whether a pod needs files on the node to start: volumes, or profiles.
func NeedsFiles(p *Pod) bool {
	spec := &p.Spec.Spec
	local := func(c v1.Container) bool { _, ok := LocalSeccomp(spec, &c); return ok }
	return len(spec.Volumes) > 0 || slices.ContainsFunc(spec.InitContainers, local) || slices.ContainsFunc(spec.Containers, local)
}

// AppArmorProfile returns the AppArmor profile of a container, or nil if there is none. The
// container's field takes precedence, then the annotation that Kubernetes used before 1.30,
// then the pod's field.
func AppArmorProfile(pod *v1.Pod, c *v1.Container) *v1.AppArmorProfile {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return sc.AppArmorProfile
	}
	if p := AnnotatedAppArmor(pod.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]); p != nil {
		return p
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.AppArmorProfile
	}
	return nil
}

// AnnotatedAppArmor returns the profile in the annotation used before 1.30, or nil if text
// is not a profile.
func AnnotatedAppArmor(text string) *v1.AppArmorProfile {
	switch text {
	case v1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
	case v1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
	}
	name, ok := strings.CutPrefix(text, v1.DeprecatedAppArmorBetaProfileNamePrefix)
	if !ok {
		return nil
	}
	return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
}
