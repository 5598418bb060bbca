package manifest

import v1 "k8s.io/api/core/v1"

// IsSidecar says that an init container is a restartable one: it keeps running
// beside the regular containers.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// QoS is the class that the pod's requests and limits of cpu and memory put it
// in. Guaranteed: both limits everywhere and every request equal to its limit.
// BestEffort: nothing asked for. Burstable: the rest. The pod's own resources,
// where written, count instead of the containers'.
func QoS(pod *v1.Pod) v1.PodQOSClass {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	bounded := true
	for _, r := range claims(&pod.Spec) {
		addCompute(requests, r.Requests)
		if addCompute(limits, r.Limits) < 2 {
			bounded = false
		}
	}
	if len(requests) == 0 && len(limits) == 0 {
		return v1.PodQOSBestEffort
	}
	if !bounded || len(requests) != len(limits) {
		return v1.PodQOSBurstable
	}
	for name, request := range requests {
		if request.Cmp(limits[name]) != 0 {
			return v1.PodQOSBurstable
		}
	}
	return v1.PodQOSGuaranteed
}

// claims lists whatever asks for resources in the pod's name.
func claims(spec *v1.PodSpec) []v1.ResourceRequirements {
	if spec.Resources != nil {
		return []v1.ResourceRequirements{*spec.Resources}
	}
	var all []v1.ResourceRequirements
	for i := range spec.InitContainers {
		all = append(all, spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		all = append(all, spec.Containers[i].Resources)
	}
	return all
}

// addCompute adds cpu and memory to sum and says how many of the two were
// asked for; zero asks for nothing.
func addCompute(sum, list v1.ResourceList) int {
	found := 0
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		q := list[name]
		if q.Sign() <= 0 {
			continue
		}
		found++
		q = q.DeepCopy()
		q.Add(sum[name])
		sum[name] = q
	}
	return found
}
