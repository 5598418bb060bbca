package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// SeccompProfile returns the seccomp profile of a container: the profile of the container or, if
// the container has none, of the pod. It returns nil if neither has a profile.
func SeccompProfile(spec *v1.PodSpec, c *v1.Container) *v1.SeccompProfile {
	if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		return sc.SeccompProfile
	}
	if sc := spec.SecurityContext; sc != nil {
		return sc.SeccompProfile
	}
	return nil
}

// LocalSeccompPath returns the path of a container's seccomp profile of type Localhost, relative to
// the seccomp directory of the node. ok is false if the profile has another type.
func LocalSeccompPath(spec *v1.PodSpec, c *v1.Container) (file string, ok bool) {
	p := SeccompProfile(spec, c)
	if p == nil || p.Type != v1.SeccompProfileTypeLocalhost {
		return "", false
	}
	if p.LocalhostProfile != nil {
		file = *p.LocalhostProfile
	}
	return file, true
}

// NeedsPreparedFiles reports whether podd must prepare files on the node before a pod starts. This
// is necessary if the pod has volumes, or a seccomp profile of type Localhost.
func NeedsPreparedFiles(p *Pod) bool {
	spec := &p.Object.Spec
	hasLocalProfile := func(c v1.Container) bool { _, ok := LocalSeccompPath(spec, &c); return ok }
	return len(spec.Volumes) > 0 || slices.ContainsFunc(spec.InitContainers, hasLocalProfile) || slices.ContainsFunc(spec.Containers, hasLocalProfile)
}

// AppArmorProfile returns the AppArmor profile of a container, or nil if there is none. The
// container's field takes precedence, then the annotation that Kubernetes used before 1.30,
// then the pod's field.
func AppArmorProfile(pod *v1.Pod, c *v1.Container) *v1.AppArmorProfile {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return sc.AppArmorProfile
	}
	if p := ParseAppArmorAnnotation(pod.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]); p != nil {
		return p
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.AppArmorProfile
	}
	return nil
}

// ParseAppArmorAnnotation parses the value of the AppArmor annotation that Kubernetes used before
// 1.30. It returns nil if text is not a profile.
func ParseAppArmorAnnotation(text string) *v1.AppArmorProfile {
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
