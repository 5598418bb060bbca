package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
)

// Holder is one version of a pod.
type Holder struct {
	Key  types.NamespacedName
	UID  types.UID
	Hash string
}

// HolderOf is that of a pod.
func HolderOf(p *manifest.Pod) Holder { return Holder{p.Key, p.UID, p.Hash} }

// ask is how many devices of a resource a container is to have.
type ask struct {
	container string
	resource  string
	n         int
}

// mostDevices is more than any plugin can list.
const mostDevices = 1 << 20

// asksOf are those of a pod in the order in which they are served: init containers
// first, since others can have their devices afterwards.
func asksOf(spec *v1.PodSpec) []ask {
	var all []ask
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			limits := list[i].Resources.Limits
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				q := limits[name]
				if manifest.IsExtended(name) && q.Sign() > 0 {
					all = append(all, ask{list[i].Name, string(name), int(min(q.Value(), mostDevices))})
				}
			}
		}
	}
	return all
}

// reusable are devices of a resource that earlier containers of a pod have and do
// not need any more when this one starts. given tells what a container has.
func reusable(spec *v1.PodSpec, container string, given func(container string) []string) []string {
	pool := sets.New[string]()
	for i := range spec.InitContainers {
		switch c := &spec.InitContainers[i]; {
		case c.Name == container:
			return pool.UnsortedList()
		case manifest.IsSidecar(c):
			pool.Delete(given(c.Name)...)
		default:
			pool.Insert(given(c.Name)...)
		}
	}
	for i := range spec.Containers {
		if spec.Containers[i].Name == container {
			break
		}
		pool.Delete(given(spec.Containers[i].Name)...)
	}
	return pool.UnsortedList()
}
