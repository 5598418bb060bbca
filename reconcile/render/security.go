package render

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// sandboxSecurity is the security context of the sandbox's own process. Its
// seccomp profile is the runtime's default whatever the containers have; it is
// privileged when any container is, as the runtime demands.
func sandboxSecurity(pod *v1.Pod, ids uint32) *cri.LinuxSandboxSecurityContext {
	s := &cri.LinuxSandboxSecurityContext{
		NamespaceOptions:   namespaces(&pod.Spec, ids),
		Privileged:         anyPrivileged(&pod.Spec),
		Seccomp:            &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault},
		SupplementalGroups: groups(pod.Spec.SecurityContext),
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		s.RunAsUser = id(sc.RunAsUser)
		s.RunAsGroup = id(sc.RunAsGroup)
		s.SelinuxOptions = selinux(sc.SELinuxOptions)
		s.SupplementalGroupsPolicy = groupsPolicy(sc)
	}
	return s
}

// containerSecurity is the security context of one container: the pod's where
// the container's own says nothing.
func containerSecurity(in *ContainerInput) *cri.LinuxContainerSecurityContext {
	pod, sc := in.Pod.Spec.Spec.SecurityContext, effective(&in.Pod.Spec.Spec, in.Container)
	s := &cri.LinuxContainerSecurityContext{
		NamespaceOptions:   in.namespaces(),
		Capabilities:       capabilities(sc.Capabilities),
		Privileged:         isTrue(sc.Privileged),
		ReadonlyRootfs:     isTrue(sc.ReadOnlyRootFilesystem),
		NoNewPrivs:         sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		SelinuxOptions:     selinux(sc.SELinuxOptions),
		RunAsUser:          id(sc.RunAsUser),
		RunAsGroup:         id(sc.RunAsGroup),
		SupplementalGroups: groups(pod),
		Seccomp:            seccomp(in.Node, sc.SeccompProfile),
	}
	//lint:ignore SA1019 the kubelet writes the older field as well, and old runtimes read it
	s.Apparmor, s.ApparmorProfile = apparmor(in.Pod.Spec, in.Container)
	if pod != nil {
		s.SupplementalGroupsPolicy = groupsPolicy(pod)
	}
	if s.RunAsUser == nil && in.ImageUser != nil {
		s.RunAsUser, s.RunAsUsername = userOf(in.ImageUser)
	}
	if sc.ProcMount == nil || *sc.ProcMount != v1.UnmaskedProcMount {
		s.MaskedPaths = slices.Concat(maskedPaths, in.Node.MaskedPaths)
		s.ReadonlyPaths = slices.Clone(readonlyPaths)
	}
	return s
}

// effective is the container's security context with the gaps that the pod's
// can fill filled; a value of its own.
func effective(spec *v1.PodSpec, c *v1.Container) v1.SecurityContext {
	var sc v1.SecurityContext
	if c.SecurityContext != nil {
		sc = *c.SecurityContext
	}
	pod := spec.SecurityContext
	if pod == nil {
		return sc
	}
	sc.SELinuxOptions = first(sc.SELinuxOptions, pod.SELinuxOptions)
	sc.RunAsUser = first(sc.RunAsUser, pod.RunAsUser)
	sc.RunAsGroup = first(sc.RunAsGroup, pod.RunAsGroup)
	sc.RunAsNonRoot = first(sc.RunAsNonRoot, pod.RunAsNonRoot)
	sc.SeccompProfile = manifest.SeccompProfile(spec, c)
	return sc
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func isTrue(b *bool) bool { return b != nil && *b }

func id(n *int64) *cri.Int64Value {
	if n == nil {
		return nil
	}
	return &cri.Int64Value{Value: *n}
}

// groups are the gids that every process of the pod has besides its own.
func groups(sc *v1.PodSecurityContext) []int64 {
	if sc == nil {
		return nil
	}
	var all []int64
	if sc.FSGroup != nil {
		all = append(all, *sc.FSGroup)
	}
	return append(all, sc.SupplementalGroups...)
}

func groupsPolicy(sc *v1.PodSecurityContext) cri.SupplementalGroupsPolicy {
	if sc.SupplementalGroupsPolicy == nil {
		return cri.SupplementalGroupsPolicy_Merge
	}
	return cri.SupplementalGroupsPolicy(cri.SupplementalGroupsPolicy_value[string(*sc.SupplementalGroupsPolicy)])
}

func selinux(o *v1.SELinuxOptions) *cri.SELinuxOption {
	if o == nil {
		return nil
	}
	return &cri.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func capabilities(c *v1.Capabilities) *cri.Capability {
	if c == nil {
		return nil
	}
	return &cri.Capability{AddCapabilities: texts(c.Add), DropCapabilities: texts(c.Drop)}
}

func texts(caps []v1.Capability) []string {
	var all []string
	for _, c := range caps {
		all = append(all, string(c))
	}
	return all
}

func anyPrivileged(spec *v1.PodSpec) bool {
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && isTrue(sc.Privileged) {
				return true
			}
		}
	}
	return slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool {
		return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
	})
}
