package volume

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
)

// memorySize returns the maximum size in bytes of a memory-backed volume. This is the minimum of
// limit, the sizeLimit of the volume, of the pod's memory limit, and of node, the memory that is
// allocatable to pods (0 if unknown). It returns 0 if there is no limit. The kernel's default is half
// of the host's memory.
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

// podMemory returns the memory limit of a pod's cgroup in bytes. This is the limit of the pod, or
// else the memory that its containers may use at a time, if each container has a limit. It returns 0
// if there is no limit.
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
	most := manifest.ContainerLimits(spec)
	return most.Memory().Value(), !slices.ContainsFunc(spec.Containers, unlimited) && !slices.ContainsFunc(spec.InitContainers, unlimited)
}
