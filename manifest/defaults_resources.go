package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// requestLimits requests what is limited and not requested.
func requestLimits(r *v1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			put(&r.Requests, name, limit.DeepCopy())
		}
	}
}

// roundUp rounds quantities to thousandths, as the API always has.
func roundUp(list v1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}

// setPodResources completes pod-level resources from the containers' (KEP-2837,
// on in 1.34): huge page limits of all containers together where the pod has
// none, then requests where the pod has limits.
func setPodResources(spec *v1.PodSpec) {
	r := spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	limits := Total(spec, Limits)
	for name, q := range limits {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		if IsHugePages(name) && !limited && !requested {
			put(&r.Limits, name, q)
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	requests := Total(spec, Requests)
	for name, q := range requests {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			put(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok && IsPodLevel(name) {
			put(&r.Requests, name, q.DeepCopy())
		}
	}
}
