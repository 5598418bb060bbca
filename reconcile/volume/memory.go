package volume

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
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
	unlimited := func(c v1.Container) bool { return c.Resources.Limits.Memory().Sign() <= 0 }
	most := manifest.Total(spec, manifest.Limits)
	return most.Memory().Value(), !slices.ContainsFunc(spec.Containers, unlimited) && !slices.ContainsFunc(spec.InitContainers, unlimited)
}
