package render

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// criticalPriority is that of the classes that the system is made of.
const criticalPriority = 2_000_000_000

// limitSwap limits the swap of a container to its share, as a rule none. On
// cgroup v1 the limit is of memory and swap together, and without a memory limit
// there is none on swap either.
func limitSwap(r *cri.LinuxContainerResources, n Node, pod *v1.Pod, c *v1.Container) {
	if !n.CgroupV2 {
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
		return
	}
	if r.Unified == nil {
		r.Unified = map[string]string{}
	}
	r.Unified["memory.swap.max"] = strconv.FormatInt(swapShare(n, pod, c), 10)
}

// swapShare is to the machine's swap as what the container requests of memory is
// to the machine's memory. Only Burstable pods that are not critical have one,
// and of them only containers that request some memory, and less than their
// limit. The kubelet counts every static pod as critical; here that would be all.
func swapShare(n Node, pod *v1.Pod, c *v1.Container) int64 {
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	critical := pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority
	if n.Swap <= 0 || critical || manifest.QoS(pod) != v1.PodQOSBurstable || request <= 0 || request == limit || request > n.Capacity.Memory {
		return 0
	}
	return int64(float64(request) / float64(n.Capacity.Memory) * float64(n.Swap))
}
