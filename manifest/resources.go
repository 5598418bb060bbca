package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// ContainerRequests returns the maximum that the containers of a pod request at the same
// time (KEP-753). It ignores pod-level requests and the overhead. The caller owns the result.
func ContainerRequests(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.AggregateContainerRequests(&v1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// ContainerLimits is ContainerRequests for limits.
func ContainerLimits(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.AggregateContainerLimits(&v1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// PodRequests returns the amounts that a pod requests from a node, including its overhead.
// The caller owns the result.
func PodRequests(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.PodRequests(podWithResources(spec), resourcehelper.PodResourcesOptions{})
}

// PodLimits is PodRequests for limits. The overhead is added only to resources with a
// limit.
func PodLimits(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.PodLimits(podWithResources(spec), resourcehelper.PodResourcesOptions{})
}

// SandboxRequests is PodRequests without the overhead.
func SandboxRequests(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.PodRequests(podWithResources(spec), resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
}

// SandboxLimits is PodLimits without the overhead.
func SandboxLimits(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.PodLimits(podWithResources(spec), resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
}

// podWithResources returns a pod with a copy of the pod-level resources, because the result
// of PodRequests contains their quantities and adding to a quantity can change its copies.
func podWithResources(spec *v1.PodSpec) *v1.Pod {
	pod := &v1.Pod{Spec: *spec}
	pod.Spec.Resources = spec.Resources.DeepCopy()
	return pod
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
