package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Requests selects requests for Total.
func Requests(r v1.ResourceRequirements) v1.ResourceList { return r.Requests }

// Limits selects limits for Total.
func Limits(r v1.ResourceRequirements) v1.ResourceList { return r.Limits }

// Total returns the maximum that the containers of a pod request at the same time: all
// regular containers and sidecars together or, if that is more, an init container with the
// sidecars before it. The caller owns the result.
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

// PodRequests returns the amounts that a pod requests from a node: PodTotal of its requests
// plus its overhead. The caller owns the result.
func PodRequests(spec *v1.PodSpec) v1.ResourceList {
	sum := PodTotal(spec, Requests)
	plus(sum, spec.Overhead)
	return sum
}

// PodLimits is PodRequests for limits. The overhead is added only to resources with a
// limit.
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

// PodTotal returns the pod-level amounts if they are set, or else Total.
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

// IsPodLevel reports whether a resource may be in spec.resources (KEP-2837).
func IsPodLevel(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || IsHugePages(name)
}

// IsExtended reports whether a resource is extended, and so provided by a device plugin:
// its name has a domain that is not one of Kubernetes' own.
func IsExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// IsHugePages reports whether a resource is huge pages of one size, like "hugepages-2Mi".
func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
