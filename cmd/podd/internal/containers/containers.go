// Package containers finds the containers of a pod by their names.
package containers

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/wording"
	"podd/server"
)

// CheckExists returns an error if no container of p has this name. It returns nil if the containers
// of p are unknown.
func CheckExists(p *server.PodView, name string) error {
	names := Names(p.Pod)
	if len(names) == 0 || slices.Contains(names, name) {
		return nil
	}
	if near := wording.FindClosest(name, names); near != "" {
		return fmt.Errorf("pod %s has no container %q; did you mean %q?", p.Key(), name, near)
	}
	return fmt.Errorf("pod %s has no container %q; it has %s", p.Key(), name, strings.Join(names, ", "))
}

// Names returns the names of all containers of a pod in the order in which they
// start.
func Names(p *v1.Pod) []string {
	var names []string
	for i := range p.Spec.InitContainers {
		names = append(names, p.Spec.InitContainers[i].Name)
	}
	for i := range p.Spec.Containers {
		names = append(names, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.EphemeralContainers {
		names = append(names, p.Spec.EphemeralContainers[i].Name)
	}
	return names
}
