package manifest

import (
	"strings"

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
	limits := total(spec, func(r v1.ResourceRequirements) v1.ResourceList { return r.Limits })
	for name, q := range limits {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		if hugePages(name) && !limited && !requested {
			put(&r.Limits, name, q)
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	requests := total(spec, func(r v1.ResourceRequirements) v1.ResourceList { return r.Requests })
	for name, q := range requests {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			put(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok && podLevel(name) {
			put(&r.Requests, name, q.DeepCopy())
		}
	}
}

// total is what all containers need at once: the regular ones and the sidecars,
// or more while one of the init containers runs beside the sidecars before it.
func total(spec *v1.PodSpec, of func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
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

func plus(sum, list v1.ResourceList) {
	for name, q := range list {
		have := sum[name]
		have.Add(q)
		sum[name] = have
	}
}

func atLeast(sum, list v1.ResourceList) {
	for name, q := range list {
		if have, ok := sum[name]; !ok || q.Cmp(have) > 0 {
			sum[name] = q.DeepCopy()
		}
	}
}

func hugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

func podLevel(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || hugePages(name)
}
