package manifest

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// IsSidecar reports whether an init container is restartable: it keeps running together
// with the regular containers.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// QoS returns the QoS class of a pod, which depends on the requests and limits of cpu and
// memory. The class is Guaranteed if all containers have both limits and every request equals
// its limit. It is BestEffort if no request or limit is set, and Burstable in all other cases.
// If the pod has pod-level resources, QoS ignores the resources of its containers. Empty pod-level
// resources, such as "resources: {}", do not count, as in the kubelet since Kubernetes 1.37.
func QoS(pod *v1.Pod) v1.PodQOSClass {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	hasAllLimits := true
	for _, r := range qosRequirements(pod) {
		addCPUAndMemory(requests, r.Requests)
		if addCPUAndMemory(limits, r.Limits) < 2 {
			hasAllLimits = false
		}
	}
	if len(requests) == 0 && len(limits) == 0 {
		return v1.PodQOSBestEffort
	}
	if !hasAllLimits || len(requests) != len(limits) {
		return v1.PodQOSBurstable
	}
	for name, request := range requests {
		if request.Cmp(limits[name]) != 0 {
			return v1.PodQOSBurstable
		}
	}
	return v1.PodQOSGuaranteed
}

// qosRequirements returns the resource requirements that determine the QoS class.
func qosRequirements(pod *v1.Pod) []v1.ResourceRequirements {
	spec := &pod.Spec
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return []v1.ResourceRequirements{*spec.Resources}
	}
	var requirements []v1.ResourceRequirements
	for i := range spec.InitContainers {
		requirements = append(requirements, spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		requirements = append(requirements, spec.Containers[i].Resources)
	}
	return requirements
}

// addCPUAndMemory adds the amounts of cpu and memory in list to sum. It returns the number of these
// two resources that have an amount above zero in list: 0, 1 or 2.
func addCPUAndMemory(sum, list v1.ResourceList) (count int) {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		q := list[name]
		if q.Sign() <= 0 {
			continue
		}
		count++
		q = q.DeepCopy()
		q.Add(sum[name])
		sum[name] = q
	}
	return count
}
