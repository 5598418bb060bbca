package render

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// The kernel's bounds and units of cpu control.
const (
	minShares    = 2
	maxShares    = 262144
	sharesPerCPU = 1024
	quotaPeriod  = 100_000 // µs
	minQuota     = 1_000   // µs
	maxMilliCPU  = 1 << 40 // beyond any machine; keeps products within 64 bits
)

// shares are the cpu shares of so many thousandths of a cpu.
func shares(milli int64) int64 {
	return min(max(min(milli, maxMilliCPU)*sharesPerCPU/1000, minShares), maxShares)
}

// quota is the µs of cpu time a period for so many thousandths of a cpu; 0 is
// no limit.
func quota(milli int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(min(milli, maxMilliCPU)*quotaPeriod/1000, minQuota)
}

// linuxResources turns requests and limits into cgroup values. A limit without
// a request is a request too.
func linuxResources(n Node, requests, limits v1.ResourceList) *cri.LinuxContainerResources {
	cpu, ok := requests[v1.ResourceCPU]
	if !ok {
		cpu = limits[v1.ResourceCPU]
	}
	r := &cri.LinuxContainerResources{
		CpuShares:          shares(cpu.MilliValue()),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if !n.NoCPUQuota {
		r.CpuPeriod = quotaPeriod
		r.CpuQuota = quota(limits.Cpu().MilliValue())
	}
	if n.CgroupV2 && !n.SingleProcessOOMKill {
		r.Unified = map[string]string{"memory.oom.group": "1"}
	}
	return r
}

// ContainerResources are the cgroup values of one container, when it is made and
// when it is resized. The pod's own limits stand in for limits the container does
// not write.
func ContainerResources(n Node, pod *v1.Pod, c *v1.Container) *cri.LinuxContainerResources {
	limits := v1.ResourceList{}
	if pod.Spec.Resources != nil {
		keep(limits, pod.Spec.Resources.Limits, manifest.IsPodLevel)
	}
	keep(limits, c.Resources.Limits, func(name v1.ResourceName) bool {
		q := c.Resources.Limits[name]
		return !q.IsZero() || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
	})
	r := linuxResources(n, c.Resources.Requests, limits)
	r.OomScoreAdj = OOMScoreAdj(pod, c, n.Capacity.Memory)
	r.HugepageLimits = hugePages(n.HugePageSizes, limits)
	if n.SwapLimits {
		limitSwap(r, n, pod, c)
	}
	return r
}

// sandboxResources are what all of the pod's containers together ask for,
// without its overhead; overheadResources are those of the overhead.
func sandboxResources(n Node, pod *v1.Pod) *cri.LinuxContainerResources {
	return linuxResources(n, manifest.PodTotal(&pod.Spec, manifest.Requests), manifest.PodTotal(&pod.Spec, manifest.Limits))
}

func overheadResources(n Node, pod *v1.Pod) *cri.LinuxContainerResources {
	if pod.Spec.Overhead == nil {
		return &cri.LinuxContainerResources{}
	}
	return linuxResources(n, pod.Spec.Overhead, pod.Spec.Overhead)
}

func keep(into, from v1.ResourceList, which func(v1.ResourceName) bool) {
	for name, q := range from {
		if which(name) {
			into[name] = q.DeepCopy()
		}
	}
}
