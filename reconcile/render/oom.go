package render

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// The ends of the scale: who is killed last and who first when the machine
// runs out of memory. Burstable containers lie strictly between.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
	oomLowest     = 1000 + oomGuaranteed
	oomHighest    = oomBestEffort - 1
)

// OOMScoreAdj is the oom_score_adj of a container's processes on a machine with
// that many bytes of memory. A Burstable container is safer the more of the
// machine's memory it requested; a sidecar is at least as safe as the pod's
// safest-to-kill regular container.
func OOMScoreAdj(pod *v1.Pod, c *v1.Container, memory int64) int64 {
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
		return oomHighest
	}
	spare := spareMemory(pod)
	score := oomShare(c.Resources.Requests.Memory().Value()+spare, memory)
	if isSidecarOf(pod, c) {
		score = min(score, oomShare(leastMemory(pod)+spare, memory))
	}
	return min(max(score, oomLowest), oomHighest)
}

// oomShare is 1000 less the request's thousandths of the machine, rounded as
// whole numbers are divided. Requests beyond the machine count as all of it,
// which also keeps the product within 64 bits.
func oomShare(request, memory int64) int64 {
	request = min(max(request, 0), memory)
	const limit = 1 << 53
	for memory > limit {
		request, memory = request/2, memory/2
	}
	return 1000 - 1000*request/memory
}

// spareMemory is each container's part of what the pod requests beyond the
// requests of its containers.
func spareMemory(pod *v1.Pod) int64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	whole := pod.Spec.Resources.Requests.Memory().Value()
	if whole == 0 {
		return 0
	}
	own := manifest.Total(&pod.Spec, manifest.Requests)
	n := int64(len(pod.Spec.Containers) + len(pod.Spec.InitContainers))
	return (whole - own.Memory().Value()) / max(n, 1)
}

// leastMemory is the smallest request among the regular containers.
func leastMemory(pod *v1.Pod) int64 {
	least := int64(0)
	for i := range pod.Spec.Containers {
		m := pod.Spec.Containers[i].Resources.Requests.Memory().Value()
		if i == 0 || m < least {
			least = m
		}
	}
	return least
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
