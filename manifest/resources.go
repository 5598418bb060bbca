package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// ContainerRequests returns the amounts of resources that the containers of a pod request. Each
// amount is the maximum sum of the requests of containers that run at the same time (KEP-753).
// ContainerRequests ignores pod-level requests and the overhead. The caller owns the result.
func ContainerRequests(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.AggregateContainerRequests(&v1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// ContainerLimits returns the maximum sum of the limits of containers that run at the same time. It
// ignores pod-level limits and the overhead. The caller owns the result.
func ContainerLimits(spec *v1.PodSpec) v1.ResourceList {
	return resourcehelper.AggregateContainerLimits(&v1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// PodRequests returns the amounts that a pod requests from a node, including its overhead.
// The caller owns the result.
func PodRequests(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodRequests(withOwnResources(pod), resourcehelper.PodResourcesOptions{})
}

// PodLimits returns the limits of a pod. It adds the overhead of the pod only to resources with
// a limit. The caller owns the result.
func PodLimits(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodLimits(withOwnResources(pod), resourcehelper.PodResourcesOptions{})
}

// SandboxRequests returns PodRequests without the overhead.
func SandboxRequests(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodRequests(withOwnResources(pod), resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
}

// SandboxLimits returns PodLimits without the overhead.
func SandboxLimits(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodLimits(withOwnResources(pod), resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
}

// withOwnResources returns pod, or a copy of pod with a copy of its pod-level resources if it has
// any. The copy is necessary because the result of PodRequests contains quantities of these
// resources. A caller that adds to such a quantity could change the quantity in pod.
func withOwnResources(pod *v1.Pod) *v1.Pod {
	if pod.Spec.Resources == nil {
		return pod
	}
	podCopy := &v1.Pod{Spec: pod.Spec}
	podCopy.Spec.Resources = pod.Spec.Resources.DeepCopy()
	return podCopy
}

// IsExtendedResource reports whether name is an extended resource: a resource with a domain other than
// those of Kubernetes, such as "example.com/gpu". Device plugins provide extended resources.
func IsExtendedResource(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// IsHugePagesResource reports whether name is a resource of huge pages, such as "hugepages-2Mi".
func IsHugePagesResource(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
