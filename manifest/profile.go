package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// SeccompProfile is a container's profile: its own or else the pod's; nil for
// none.
func SeccompProfile(spec *v1.PodSpec, c *v1.Container) *v1.SeccompProfile {
	if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		return sc.SeccompProfile
	}
	if sc := spec.SecurityContext; sc != nil {
		return sc.SeccompProfile
	}
	return nil
}

// LocalSeccomp is the file of a container's seccomp profile, below the node's
// directory of them; ok is false when its profile is in no file.
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

// NeedsFiles says that a pod can only start with what the node must have on
// disk: volumes, or files of profiles.
func NeedsFiles(p *Pod) bool {
	spec := &p.Spec.Spec
	local := func(c v1.Container) bool { _, ok := LocalSeccomp(spec, &c); return ok }
	return len(spec.Volumes) > 0 || slices.ContainsFunc(spec.InitContainers, local) || slices.ContainsFunc(spec.Containers, local)
}

// AppArmorProfile is a container's profile, nil for none. The annotation of
// before 1.30 still counts, after the container's field and before the pod's.
func AppArmorProfile(pod *v1.Pod, c *v1.Container) *v1.AppArmorProfile {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return sc.AppArmorProfile
	}
	if p := annotatedProfile(pod.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]); p != nil {
		return p
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.AppArmorProfile
	}
	return nil
}

// annotatedProfile is nil for what is no profile.
func annotatedProfile(text string) *v1.AppArmorProfile {
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
