package defaults

import (
	"slices"

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

// setAmount sets the amount of one resource in a list. *list may be nil.
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

// setPodResources sets defaults of pod-level resources (KEP-2837), as an API server does when it
// creates a pod. It does nothing if the pod has no pod-level resources. It sets missing amounts in
// this order:
//
//   - limits of huge pages, from the limits of the containers;
//   - requests of cpu and memory, from the requests of the containers;
//   - requests that are still missing, from the pod-level limits;
//   - limits, from the limits of the containers, if all containers have a limit. Such a limit is
//     never less than the request of the pod.
func setPodResources(spec *v1.PodSpec) {
	r := spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	limits := manifest.ContainerLimits(spec)
	for name, q := range limits {
		_, hasLimit := r.Limits[name]
		_, hasRequest := r.Requests[name]
		if manifest.IsHugePagesResource(name) && !hasLimit && !hasRequest {
			setAmount(&r.Limits, name, q)
		}
	}
	for name, q := range manifest.ContainerRequests(spec) {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			setAmount(&r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			setAmount(&r.Requests, name, q.DeepCopy())
		}
	}
	for name, request := range r.Requests {
		if _, ok := r.Limits[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) && allHaveLimit(spec, name) {
			limit := limits[name]
			if limit.Cmp(request) < 0 {
				limit = request
			}
			setAmount(&r.Limits, name, limit.DeepCopy())
		}
	}
}

// allHaveLimit reports whether all containers and init containers have a limit of a resource.
func allHaveLimit(spec *v1.PodSpec, name v1.ResourceName) bool {
	hasNone := func(c v1.Container) bool { _, ok := c.Resources.Limits[name]; return !ok }
	return !slices.ContainsFunc(spec.Containers, hasNone) && !slices.ContainsFunc(spec.InitContainers, hasNone)
}
