package volume

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
)

// memorySize returns the maximum size in bytes of a memory-backed volume. It is the smallest of
// three limits: limit, which is the sizeLimit of the volume; the pod's memory limit; and node,
// which is the memory that is allocatable to pods (0 if unknown). memorySize returns 0 if none of
// these limits is set. In that case the kernel uses its default, half of the host's memory.
func memorySize(pod *v1.Pod, limit *resource.Quantity, node int64) int64 {
	size := node
	applyLimit := func(n int64) {
		if n > 0 && (size == 0 || n < size) {
			size = n
		}
	}
	applyLimit(podMemory(&pod.Spec))
	if limit != nil {
		applyLimit(limit.Value())
	}
	return size
}

// podMemory returns the memory limit of a pod's cgroup in bytes. It includes the overhead of the
// pod. If the pod has no memory limit, but each container has one, the result is based on the
// memory that the containers may use at the same time. podMemory returns 0 if there is no limit.
func podMemory(spec *v1.PodSpec) int64 {
	total, hasLimit := containersMemory(spec)
	if spec.Resources != nil {
		if q, ok := spec.Resources.Limits[v1.ResourceMemory]; ok {
			total, hasLimit = q.Value(), true
		}
	}
	if !hasLimit || total == 0 {
		return 0
	}
	if q, ok := spec.Overhead[v1.ResourceMemory]; ok {
		total += q.Value()
	}
	return total
}

func containersMemory(spec *v1.PodSpec) (total int64, hasLimit bool) {
	hasNoLimit := func(c v1.Container) bool { return c.Resources.Limits.Memory().Sign() <= 0 }
	limits := manifest.ContainerLimits(spec)
	return limits.Memory().Value(), !slices.ContainsFunc(spec.Containers, hasNoLimit) && !slices.ContainsFunc(spec.InitContainers, hasNoLimit)
}
