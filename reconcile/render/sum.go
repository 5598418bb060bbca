package render

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// sumPod is what the containers ask for together, with what the pod itself asks
// for in its place.
func sumPod(pod *v1.Pod, list func(v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum := manifest.Total(&pod.Spec, list)
	if pod.Spec.Resources != nil {
		keep(sum, list(*pod.Spec.Resources), manifest.IsPodLevel)
	}
	return sum
}

func keep(into, from v1.ResourceList, which func(v1.ResourceName) bool) {
	for name, q := range from {
		if which(name) {
			into[name] = q.DeepCopy()
		}
	}
}
