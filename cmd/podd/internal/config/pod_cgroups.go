package config

import (
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// disablesPodCgroups reports whether podd creates no cgroups of pods and QoS classes.
func disablesPodCgroups(k *kubelet.KubeletConfiguration) bool {
	return k.CgroupsPerQOS != nil && !*k.CgroupsPerQOS
}

// checkPodCgroups checks the fields that need the cgroups of pods. The kubelet rejects only the values
// of enforceNodeAllocatable, and ignores the other fields.
func (c *checker) checkPodCgroups() {
	k := c.kubelet
	if !disablesPodCgroups(k) {
		return
	}
	const remedy = "needs cgroupsPerQOS: true"
	if k.EnforceNodeAllocatable == nil {
		c.errorf("cgroupsPerQOS", "false needs enforceNodeAllocatable: [none], because the default, pods, limits the cgroup of all pods")
	}
	for i, value := range k.EnforceNodeAllocatable {
		if value != enforceNone {
			c.errorf(joinIndex("enforceNodeAllocatable", i), "%s %s", value, remedy)
		}
	}
	if k.PodPidsLimit != nil && *k.PodPidsLimit > 0 {
		c.errorf("podPidsLimit", "%d %s, because the limit is set in the cgroup of the pod", *k.PodPidsLimit, remedy)
	}
	if k.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy {
		c.errorf("memoryReservationPolicy", "%s %s, because the kernel protects memory only if the cgroups above it are protected", k.MemoryReservationPolicy, remedy)
	}
	if k.CgroupRoot != "" {
		c.warn("cgroupRoot", "no effect, because cgroupsPerQOS is false")
	}
}
