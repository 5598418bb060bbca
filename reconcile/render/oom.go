package render

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// oomGuaranteed is the score of Guaranteed containers, which are killed last if the host is out of
// memory. oomBestEffort is the score of BestEffort containers, which are killed first. The scores
// of Burstable containers are between oomBurstableMin and oomBurstableMax.
const (
	oomGuaranteed   = -997
	oomBestEffort   = 1000
	oomBurstableMin = 1000 + oomGuaranteed
	oomBurstableMax = oomBestEffort - 1
)

// oomScoreAdj returns the oom_score_adj of a container's processes. memory is the memory of
// the host in bytes. The score of a Burstable container decreases with its memory request.
// The score of a sidecar is not higher than the score of the regular container with the
// smallest request.
func oomScoreAdj(pod *v1.Pod, c *v1.Container, memory int64) int64 {
	if pod.Spec.PriorityClassName == "system-node-critical" {
		return oomGuaranteed
	}
	switch manifest.QoS(pod) {
	case v1.PodQOSGuaranteed:
		return oomGuaranteed
	case v1.PodQOSBestEffort:
		return oomBestEffort
	}
	if memory <= 0 {
		return oomBurstableMax
	}
	extra := extraMemoryPerContainer(pod)
	score := oomShare(c.Resources.Requests.Memory().Value()+extra, memory)
	if isSidecarOf(pod, c) {
		score = min(score, oomShare(minMemoryRequest(pod)+extra, memory))
	}
	return min(max(score, oomBurstableMin), oomBurstableMax)
}

// oomShare returns 1000 - (1000*request)/memory, calculated with integers. If request exceeds
// memory, oomShare returns 0 and avoids an overflow. A negative request counts as 0.
func oomShare(request, memory int64) int64 {
	request = min(max(request, 0), memory)
	const limit = 1 << 53
	for memory > limit {
		request, memory = request/2, memory/2
	}
	return 1000 - 1000*request/memory
}

// extraMemoryPerContainer returns the share of each container in the memory that the pod requests
// in addition to the requests of its containers. All shares are equal.
func extraMemoryPerContainer(pod *v1.Pod) int64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	total := pod.Spec.Resources.Requests.Memory().Value()
	if total == 0 {
		return 0
	}
	containerRequests := manifest.ContainerRequests(&pod.Spec)
	n := int64(len(pod.Spec.Containers) + len(pod.Spec.InitContainers))
	return (total - containerRequests.Memory().Value()) / max(n, 1)
}

// minMemoryRequest returns the smallest memory request of the regular containers.
func minMemoryRequest(pod *v1.Pod) int64 {
	smallest := int64(0)
	for i := range pod.Spec.Containers {
		m := pod.Spec.Containers[i].Resources.Requests.Memory().Value()
		if i == 0 || m < smallest {
			smallest = m
		}
	}
	return smallest
}

func isSidecarOf(pod *v1.Pod, c *v1.Container) bool {
	if !manifest.IsSidecar(c) {
		return false
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == c.Name {
			return true
		}
	}
	return false
}
