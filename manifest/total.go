package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Requests and Limits are what Total can sum.
func Requests(r v1.ResourceRequirements) v1.ResourceList { return r.Requests }

// Limits is the other one.
func Limits(r v1.ResourceRequirements) v1.ResourceList { return r.Limits }

// Total is the most that the containers of a pod ask for at any one time: the
// regular ones and the sidecars together, or an init container with the
// sidecars before it where that is more. The result is the caller's.
func Total(spec *v1.PodSpec, of func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum, sidecars, peak := v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}
	for i := range spec.Containers {
		plus(sum, of(spec.Containers[i].Resources))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if IsSidecar(c) {
			plus(sum, of(c.Resources))
			plus(sidecars, of(c.Resources))
			atLeast(peak, sidecars)
			continue
		}
		now := sidecars.DeepCopy()
		plus(now, of(c.Resources))
		atLeast(peak, now)
	}
	atLeast(sum, peak)
	return sum
}

// PodRequests is what a pod takes of a node: PodTotal of its requests, and its
// overhead. The result is the caller's.
func PodRequests(spec *v1.PodSpec) v1.ResourceList {
	sum := PodTotal(spec, Requests)
	plus(sum, spec.Overhead)
	return sum
}

// PodLimits is PodRequests for limits; an overhead is none of what has no limit.
func PodLimits(spec *v1.PodSpec) v1.ResourceList {
	sum := PodTotal(spec, Limits)
	for name, more := range spec.Overhead {
		if q := sum[name]; !q.IsZero() {
			q.Add(more)
			sum[name] = q
		}
	}
	return sum
}

// PodTotal is Total, or what the pod itself asks for in its place.
func PodTotal(spec *v1.PodSpec, of func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum := Total(spec, of)
	if spec.Resources != nil {
		for name, q := range of(*spec.Resources) {
			if IsPodLevel(name) {
				sum[name] = q.DeepCopy()
			}
		}
	}
	return sum
}

func plus(sum, list v1.ResourceList) {
	for name, q := range list {
		q = q.DeepCopy()
		q.Add(sum[name])
		sum[name] = q
	}
}

func atLeast(sum, list v1.ResourceList) {
	for name, q := range list {
		if have, ok := sum[name]; !ok || q.Cmp(have) > 0 {
			sum[name] = q.DeepCopy()
		}
	}
}

// IsPodLevel says that spec.resources may speak of a resource (KEP-2837).
func IsPodLevel(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || IsHugePages(name)
}

// IsExtended says that a resource is counted by somebody's device plugin: a name
// in a domain that is none of Kubernetes' own.
func IsExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// IsHugePages says that a resource is pages of one size, "hugepages-2Mi".
func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
