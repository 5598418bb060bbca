package render

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime"
)

// sandboxSecurity returns the security context of the sandbox's own process. Its seccomp profile is
// always the runtime's default. It is privileged if any container is privileged, because runtimes
// require this.
func sandboxSecurity(pod *v1.Pod, ids runtime.IDRange) *cri.LinuxSandboxSecurityContext {
	s := &cri.LinuxSandboxSecurityContext{
		NamespaceOptions:   namespaces(&pod.Spec, ids),
		Privileged:         hasPrivilegedContainer(&pod.Spec),
		Seccomp:            &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault},
		SupplementalGroups: supplementalGroups(pod.Spec.SecurityContext),
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		s.RunAsUser = int64Value(sc.RunAsUser)
		s.RunAsGroup = int64Value(sc.RunAsGroup)
		s.SelinuxOptions = selinux(sc.SELinuxOptions)
		s.SupplementalGroupsPolicy = groupsPolicy(sc)
	}
	return s
}

// containerSecurity returns the security context of a container. Fields that the container does not
// set have the values of the pod.
func containerSecurity(in *ContainerInput) *cri.LinuxContainerSecurityContext {
	pod, sc := in.Pod.Object.Spec.SecurityContext, effectiveSecurity(&in.Pod.Object.Spec, in.Container)
	s := &cri.LinuxContainerSecurityContext{
		NamespaceOptions:   in.namespaces(),
		Capabilities:       capabilities(sc.Capabilities),
		Privileged:         isTrue(sc.Privileged),
		ReadonlyRootfs:     isTrue(sc.ReadOnlyRootFilesystem),
		NoNewPrivs:         sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		SelinuxOptions:     selinux(sc.SELinuxOptions),
		RunAsUser:          int64Value(sc.RunAsUser),
		RunAsGroup:         int64Value(sc.RunAsGroup),
		SupplementalGroups: supplementalGroups(pod),
		Seccomp:            seccompProfile(in.Node, sc.SeccompProfile),
	}
	//lint:ignore SA1019 like the kubelet, set the older field for old runtimes, too
	s.Apparmor, s.ApparmorProfile = apparmorProfile(in.Pod.Object, in.Container)
	if pod != nil {
		s.SupplementalGroupsPolicy = groupsPolicy(pod)
	}
	if s.RunAsUser == nil && in.ImageUser != nil {
		s.RunAsUser, s.RunAsUsername = imageUser(in.ImageUser)
	}
	if sc.ProcMount == nil || *sc.ProcMount != v1.UnmaskedProcMount {
		s.MaskedPaths = slices.Clone(maskedPaths)
		s.ReadonlyPaths = slices.Clone(readonlyPaths)
	}
	return s
}

// effectiveSecurity returns a copy of the container's security context. Fields that the container
// does not set have the values of the pod.
func effectiveSecurity(spec *v1.PodSpec, c *v1.Container) v1.SecurityContext {
	var sc v1.SecurityContext
	if c.SecurityContext != nil {
		sc = *c.SecurityContext
	}
	pod := spec.SecurityContext
	if pod == nil {
		return sc
	}
	sc.SELinuxOptions = firstNonNil(sc.SELinuxOptions, pod.SELinuxOptions)
	sc.RunAsUser = firstNonNil(sc.RunAsUser, pod.RunAsUser)
	sc.RunAsGroup = firstNonNil(sc.RunAsGroup, pod.RunAsGroup)
	sc.RunAsNonRoot = firstNonNil(sc.RunAsNonRoot, pod.RunAsNonRoot)
	sc.SeccompProfile = manifest.SeccompProfile(spec, c)
	return sc
}

func firstNonNil[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func isTrue(b *bool) bool { return b != nil && *b }

func int64Value(n *int64) *cri.Int64Value {
	if n == nil {
		return nil
	}
	return &cri.Int64Value{Value: *n}
}

// supplementalGroups returns the supplemental groups of every process of the pod.
func supplementalGroups(sc *v1.PodSecurityContext) []int64 {
	if sc == nil {
		return nil
	}
	var groups []int64
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	return append(groups, sc.SupplementalGroups...)
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
	return &cri.Capability{AddCapabilities: toStrings(c.Add), DropCapabilities: toStrings(c.Drop)}
}

func toStrings(caps []v1.Capability) []string {
	var names []string
	for _, c := range caps {
		names = append(names, string(c))
	}
	return names
}

func hasPrivilegedContainer(spec *v1.PodSpec) bool {
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
