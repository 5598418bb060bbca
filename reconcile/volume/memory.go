package volume

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// memorySize is the size of a memory-backed volume in bytes: the least of its
// own limit, of what the pod may use, and of what the node gives to pods (zero:
// unknown). Zero means that nothing bounds it, and the kernel takes half of the
// machine's memory.
func memorySize(pod *v1.Pod, limit *resource.Quantity, node int64) int64 {
	size := node
	bound := func(n int64) {
		if n > 0 && (size == 0 || n < size) {
			size = n
		}
	}
	bound(podMemory(&pod.Spec))
	if limit != nil {
		bound(limit.Value())
	}
	return size
}

// podMemory is the memory limit of a pod's cgroup, zero when it has none: that
// of the pod itself, else the most its containers may use at a time, provided
// that each of them has a limit.
func podMemory(spec *v1.PodSpec) int64 {
	total, limited := containersMemory(spec)
	if spec.Resources != nil {
		if q, ok := spec.Resources.Limits[v1.ResourceMemory]; ok {
			total, limited = q.Value(), true
		}
	}
	if !limited || total == 0 {
		return 0
	}
	if q, ok := spec.Overhead[v1.ResourceMemory]; ok {
		total += q.Value()
	}
	return total
}

func containersMemory(spec *v1.PodSpec) (total int64, limited bool) {
	limited = true
	of := func(c *v1.Container) int64 {
		n := c.Resources.Limits.Memory().Value()
		limited = limited && n > 0
		return n
	}
	for i := range spec.Containers {
		total += of(&spec.Containers[i])
	}
	// Sidecars run on beside the init containers that follow, and beside the
	// regular ones.
	var sidecars, most int64
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		n := of(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			sidecars += n
			n = 0
		}
		most = max(most, sidecars+n)
	}
	return max(total+sidecars, most), limited
}
