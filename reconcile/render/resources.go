package render

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// The limits and units of CPU shares.
const (
	minShares    = 2
	maxShares    = 262144
	sharesPerCPU = 1024
	maxMilliCPU  = 1 << 40 // more CPU than any host has; prevents overflows
)

// cpuShares converts millicores to CPU shares.
func cpuShares(milli int64) int64 {
	return min(max(min(milli, maxMilliCPU)*sharesPerCPU/1000, minShares), maxShares)
}

// newLinuxResources converts requests and limits to cgroup values. A missing CPU request
// defaults to the limit.
func newLinuxResources(n Node, requests, limits v1.ResourceList) *cri.LinuxContainerResources {
	cpu, ok := requests[v1.ResourceCPU]
	if !ok {
		cpu = limits[v1.ResourceCPU]
	}
	r := &cri.LinuxContainerResources{
		CpuShares:          cpuShares(cpu.MilliValue()),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if !n.CPUQuota.IsDisabled {
		r.CpuPeriod = n.CPUQuota.periodMicros()
		r.CpuQuota = cpuQuota(limits.Cpu().MilliValue(), r.CpuPeriod)
	}
	if n.UsesCgroupV2 && !n.SingleProcessOOMKill {
		r.Unified = map[string]string{"memory.oom.group": "1"}
	}
	return r
}

// ContainerResources returns the cgroup values of a container, for its creation and for a resize.
// If the container has no limit, ContainerResources uses the limit of the pod.
func ContainerResources(n Node, pod *v1.Pod, c *v1.Container) *cri.LinuxContainerResources {
	limits := v1.ResourceList{}
	if pod.Spec.Resources != nil {
		copyIf(limits, pod.Spec.Resources.Limits, resourcehelper.IsSupportedPodLevelResource)
	}
	copyIf(limits, c.Resources.Limits, func(name v1.ResourceName) bool {
		q := c.Resources.Limits[name]
		return !q.IsZero() || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
	})
	r := newLinuxResources(n, c.Resources.Requests, limits)
	r.OomScoreAdj = oomScoreAdj(pod, c, n.Capacity.Memory)
	r.HugepageLimits = hugePages(n.HugePageSizes, limits)
	if n.SupportsSwapLimits {
		limitSwap(r, n, pod, c)
	}
	setMemoryQoS(r, n, pod, c)
	return r
}

// sandboxResources returns the total resources of the pod's containers, without the overhead of the
// pod.
func sandboxResources(n Node, pod *v1.Pod) *cri.LinuxContainerResources {
	return newLinuxResources(n, manifest.SandboxRequests(pod), manifest.SandboxLimits(pod))
}

// overheadResources returns the resources of the pod's overhead.
func overheadResources(n Node, pod *v1.Pod) *cri.LinuxContainerResources {
	if pod.Spec.Overhead == nil {
		return &cri.LinuxContainerResources{}
	}
	return newLinuxResources(n, pod.Spec.Overhead, pod.Spec.Overhead)
}

// copyIf copies each resource from src to dst for whose name match returns true.
func copyIf(dst, src v1.ResourceList, match func(v1.ResourceName) bool) {
	for name, q := range src {
		if match(name) {
			dst[name] = q.DeepCopy()
		}
	}
}
