package config

import (
	"path"
	"slices"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// A ReservedCgroup is the cgroup of the processes for which the node reserves resources, with the
// configuration of its limits. Its fields are described at render.ReservedCgroup, which has the same
// fields. This package has a type of its own, because it does not import package render.
type ReservedCgroup struct {
	Enforcement, Path                string
	Resources                        v1.ResourceList
	CompressibleOnly, ProtectsMemory bool
}

// Values of enforceNodeAllocatable.
const (
	enforcePods = "pods"
	enforceNone = "none"
)

// A reservedEnforcement is a value of enforceNodeAllocatable that limits the cgroup of reserved
// resources.
type reservedEnforcement struct {
	value            string
	resourcesField   string
	cgroupField      string
	compressibleOnly bool
	conflict         string // a value that limits the same cgroup in another way
	get              func(*kubelet.KubeletConfiguration) (resources map[string]string, cgroup string)
}

// reservedEnforcements contains the values of enforceNodeAllocatable that limit the cgroup of reserved
// resources, in the order in which the kubelet applies them.
var reservedEnforcements = []reservedEnforcement{
	{"system-reserved", "systemReserved", "systemReservedCgroup", false, "system-reserved-compressible", systemReserved},
	{"kube-reserved", "kubeReserved", "kubeReservedCgroup", false, "kube-reserved-compressible", kubeReserved},
	{"system-reserved-compressible", "systemReserved", "systemReservedCgroup", true, "system-reserved", systemReserved},
	{"kube-reserved-compressible", "kubeReserved", "kubeReservedCgroup", true, "kube-reserved", kubeReserved},
}

func systemReserved(k *kubelet.KubeletConfiguration) (resources map[string]string, cgroup string) {
	return k.SystemReserved, k.SystemReservedCgroup
}

func kubeReserved(k *kubelet.KubeletConfiguration) (resources map[string]string, cgroup string) {
	return k.KubeReserved, k.KubeReservedCgroup
}

// checkEnforceAllocatable checks the values of enforceNodeAllocatable and the fields that they need.
func (c *checker) checkEnforceAllocatable() {
	list := c.kubelet.EnforceNodeAllocatable
	for i, value := range list {
		at := joinIndex("enforceNodeAllocatable", i)
		if slices.Contains(list[:i], value) {
			c.errorf(at, "duplicate value %s; remove it", value)
			continue
		}
		e := slices.IndexFunc(reservedEnforcements, func(e reservedEnforcement) bool { return e.value == value })
		switch {
		case e >= 0:
			c.checkReservedEnforcement(at, reservedEnforcements[e], list[:i])
		case value == enforceNone && len(list) > 1:
			c.errorf(at, "none must be the only value")
		case value == enforcePods && c.kubelet.RunOnce:
			c.warnf(at, "pods: ignored with --runonce, because a run knows only its own pods, not all pods of the node")
		case value != enforcePods && value != enforceNone:
			c.errorf(at, "unknown value %q; must be pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible or none", value)
		}
	}
	c.checkReservedCgroups()
}

// checkReservedEnforcement checks one value of enforceNodeAllocatable. earlier are the values before
// it.
func (c *checker) checkReservedEnforcement(at string, e reservedEnforcement, earlier []string) {
	resources, cgroup := e.get(c.kubelet)
	if slices.Contains(earlier, e.conflict) {
		c.errorf(at, "%s conflicts with %s; remove one of them", e.value, e.conflict)
	}
	if cgroup == "" {
		c.errorf(at, "%s needs %s, the cgroup to limit", e.value, e.cgroupField)
	}
	if len(resources) == 0 {
		c.errorf(at, "%s needs %s, the resources to which the cgroup is limited", e.value, e.resourcesField)
	}
	if c.kubelet.RunOnce {
		c.warnf(at, "%s: ignored with --runonce, because the limits would remain after podd has exited", e.value)
	}
}

// checkReservedCgroups checks systemReservedCgroup and kubeReservedCgroup. It warns if such a field
// has no effect.
func (c *checker) checkReservedCgroups() {
	list := c.kubelet.EnforceNodeAllocatable
	for _, e := range reservedEnforcements {
		_, cgroup := e.get(c.kubelet)
		switch {
		case cgroup == "", e.compressibleOnly: // the row of this cgroup without compressibleOnly checks the name
		case hasDotDot(cgroup):
			c.errorf(e.cgroupField, "%q must not contain \"..\"", cgroup)
		case path.Join("/", cgroup) == "/":
			c.errorf(e.cgroupField, "%q is the root cgroup, which cannot be limited; set the cgroup of the processes for which resources are reserved", cgroup)
		case c.kubelet.RunOnce: // warnIgnoredSettings returns the warning
		case !slices.Contains(list, e.value) && !slices.Contains(list, e.conflict):
			c.warn(e.cgroupField, "no effect, because enforceNodeAllocatable contains neither "+e.value+" nor "+e.conflict)
		}
	}
}

// enforcesReserved reports whether all pods together are limited to the resources that are not
// reserved.
func enforcesReserved(k *kubelet.KubeletConfiguration) bool {
	return k.EnforceNodeAllocatable == nil || slices.Contains(k.EnforceNodeAllocatable, enforcePods)
}

// reservedCgroups returns the cgroups that are limited to reserved resources.
// checkEnforceAllocatable must have found no error in k.
func reservedCgroups(k *kubelet.KubeletConfiguration) (cgroups []ReservedCgroup) {
	for _, e := range reservedEnforcements {
		if !slices.Contains(k.EnforceNodeAllocatable, e.value) {
			continue
		}
		resources, cgroup := e.get(k)
		cgroups = append(cgroups, ReservedCgroup{
			Enforcement: e.value, Path: cgroup, Resources: parseReserved(resources),
			CompressibleOnly: e.compressibleOnly, ProtectsMemory: isGateEnabled(k, gateMemoryQoS),
		})
	}
	return cgroups
}
