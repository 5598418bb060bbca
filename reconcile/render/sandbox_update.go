package render

import (
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// MergedInto returns the limits of a cgroup with the limits current after the limits of c have been
// set. A limit of 0 in c does not change the limit of the cgroup.
func (c Cgroup) MergedInto(current Cgroup) Cgroup {
	for _, limit := range []struct{ own, current *int64 }{
		{&c.CPUShares, &current.CPUShares}, {&c.CPUQuota, &current.CPUQuota}, {&c.CPUPeriod, &current.CPUPeriod}, {&c.Memory, &current.Memory},
	} {
		if *limit.own == 0 {
			*limit.own = *limit.current
		}
	}
	return c
}

// Changes reports whether c changes the CPU or the memory of a cgroup with the limits current.
func (c Cgroup) Changes(current Cgroup) bool {
	c = c.MergedInto(current)
	return c.CPUShares != current.CPUShares || c.CPUQuota != current.CPUQuota || c.CPUPeriod != current.CPUPeriod || c.Memory != current.Memory
}

// SandboxUpdate returns the resources that podd announces to the runtime before it sets the limits of
// a pod's cgroup to those of c. resources does not include the pod's overhead. As in the kubelet, an
// unlimited CPU has the quota -1. Unlike the kubelet, an unlimited memory has the limit 0, as in the
// config of a new sandbox; the kubelet sends a number that depends on the version of cgroups.
func SandboxUpdate(n Node, pod *v1.Pod, c Cgroup) (overhead, resources *cri.LinuxContainerResources) {
	resources = &cri.LinuxContainerResources{CpuShares: c.CPUShares, CpuQuota: c.CPUQuota, CpuPeriod: c.CPUPeriod, MemoryLimitInBytes: c.Memory}
	if milli := pod.Spec.Overhead.Cpu().MilliValue(); milli > 0 {
		if c.CPUShares > 0 {
			resources.CpuShares = cpuShares(milliCPU(c.CPUShares) - milli)
		}
		if c.CPUQuota > 0 {
			resources.CpuQuota -= cpuQuota(milli, c.CPUPeriod)
		}
	}
	if c.Memory > 0 {
		resources.MemoryLimitInBytes -= pod.Spec.Overhead.Memory().Value()
	}
	if c.Protection != nil {
		resources.Unified = c.Protection.Files()
	}
	return overheadResources(n, pod), resources
}

// milliCPU is the inverse of cpuShares. It rounds up, because cpuShares rounds down.
func milliCPU(shares int64) int64 { return (shares*1000 + sharesPerCPU - 1) / sharesPerCPU }
