package plan

import v1 "k8s.io/api/core/v1"

// FindContainer returns the container of a pod with this name, its kind, and its index in the list
// of containers of this kind. c is nil if there is no such container.
func FindContainer(pod *v1.Pod, name string) (c *v1.Container, kind Kind, index int) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return c, ContainerKind(c, true), i
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon; c.Name == name {
			return (*v1.Container)(c), KindEphemeral, i
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c, KindRegular, i
		}
	}
	return nil, "", 0
}
