package render

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// limitSwap limits the swap of a container to its swapShare. On cgroup v1, the limit applies to the
// sum of memory and swap. So a container with a memory limit gets no swap there, and the swap of a
// container without a memory limit is not limited.
func limitSwap(r *cri.LinuxContainerResources, n Node, pod *v1.Pod, c *v1.Container) {
	if !n.UsesCgroupV2 {
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
		return
	}
	if r.Unified == nil {
		r.Unified = map[string]string{}
	}
	r.Unified["memory.swap.max"] = strconv.FormatInt(swapShare(n, pod, c), 10)
}

// swapShare returns the swap of a container in bytes. It is SwapBytes, multiplied by the ratio of
// the container's memory request to the memory of the host. A container has swap only if it
// requests memory, its request differs from its limit, and its pod is Burstable and not critical.
// Unlike the kubelet, podd does not regard static pods as critical, because all pods of manifests
// are static.
func swapShare(n Node, pod *v1.Pod, c *v1.Container) int64 {
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	critical := pod.Spec.Priority != nil && *pod.Spec.Priority >= manifest.CriticalPriority
	if n.SwapBytes <= 0 || critical || manifest.QoS(pod) != v1.PodQOSBurstable || request <= 0 || request == limit || request > n.Capacity.Memory {
		return 0
	}
	return int64(float64(request) / float64(n.Capacity.Memory) * float64(n.SwapBytes))
}
