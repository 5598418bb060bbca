package manifest

import (
	"slices"

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
