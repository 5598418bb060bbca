package defaults

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"podd/manifest"
)

// setMissingRequests sets each missing request to the limit of the same resource.
func setMissingRequests(r *v1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			setAmount(&r.Requests, name, limit.DeepCopy())
		}
	}
}

// setAmount sets an amount of a list, which may be nil.
func setAmount(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q
}

// roundUp rounds quantities up to thousandths, as an API server does.
func roundUp(list v1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}

// setPodResources sets defaults of pod-level resources (KEP-2837, enabled in 1.34). If the pod
// sets no limits of huge pages, it gets the sum of the containers' limits. If the pod has
// limits, missing requests are set from the requests of the containers and from the limits.
func setPodResources(spec *v1.PodSpec) {
	r := spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	limits := manifest.ContainerLimits(spec)
	for name, q := range limits {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		if manifest.IsHugePages(name) && !limited && !requested {
			setAmount(&r.Limits, name, q)
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	requests := manifest.ContainerRequests(spec)
	for name, q := range requests {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			setAmount(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			setAmount(&r.Requests, name, q.DeepCopy())
		}
	}
}
