package render

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

func requests(r v1.ResourceRequirements) v1.ResourceList { return r.Requests }
func limits(r v1.ResourceRequirements) v1.ResourceList   { return r.Limits }

// sumPod is sumContainers with what the pod itself asks for in its place.
func sumPod(pod *v1.Pod, list func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum := sumContainers(pod, list)
	if pod.Spec.Resources != nil {
		keep(sum, list(*pod.Spec.Resources), isPodLevel)
	}
	return sum
}

// sumContainers is the most that the containers ask for at any one time: all
// regular containers and sidecars together, or an init container with the
// sidecars before it where that is more.
func sumContainers(pod *v1.Pod, list func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum, sidecars, peak := v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(sum, list(pod.Spec.Containers[i].Resources))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		own := list(c.Resources)
		if manifest.IsSidecar(c) {
			add(sum, own)
			add(sidecars, own)
			raise(peak, sidecars)
			continue
		}
		together := sidecars.DeepCopy()
		add(together, own)
		raise(peak, together)
	}
	raise(sum, peak)
	return sum
}

func add(sum, list v1.ResourceList) {
	for name, q := range list {
		q = q.DeepCopy()
		q.Add(sum[name])
		sum[name] = q
	}
}

func raise(most, list v1.ResourceList) {
	for name, q := range list {
		if have, ok := most[name]; !ok || q.Cmp(have) > 0 {
			most[name] = q.DeepCopy()
		}
	}
}

func keep(into, from v1.ResourceList, which func(v1.ResourceName) bool) {
	for name, q := range from {
		if which(name) {
			into[name] = q.DeepCopy()
		}
	}
}

// isPodLevel says that spec.resources may speak of this resource.
func isPodLevel(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory ||
		strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
