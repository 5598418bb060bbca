package server

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// withoutEnvValues is a copy of p that holds no value of an environment
// variable, neither in the containers nor in the copy of the manifest that
// kubectl keeps in an annotation. What is not changed is shared with p.
func withoutEnvValues(p *v1.Pod) v1.Pod {
	out := *p
	if _, ok := p.Annotations[v1.LastAppliedConfigAnnotation]; ok {
		out.Annotations = maps.Clone(p.Annotations)
		delete(out.Annotations, v1.LastAppliedConfigAnnotation)
	}
	out.Spec.InitContainers = slices.Clone(p.Spec.InitContainers)
	for i := range out.Spec.InitContainers {
		dropValues(&out.Spec.InitContainers[i].Env)
	}
	out.Spec.Containers = slices.Clone(p.Spec.Containers)
	for i := range out.Spec.Containers {
		dropValues(&out.Spec.Containers[i].Env)
	}
	out.Spec.EphemeralContainers = slices.Clone(p.Spec.EphemeralContainers)
	for i := range out.Spec.EphemeralContainers {
		dropValues(&out.Spec.EphemeralContainers[i].Env)
	}
	return out
}

// dropValues replaces the list, which is shared, by one without values.
func dropValues(env *[]v1.EnvVar) {
	*env = slices.Clone(*env)
	for i := range *env {
		(*env)[i].Value = ""
	}
}
