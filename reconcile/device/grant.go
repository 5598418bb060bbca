package device

import (
	"maps"
	"slices"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Device is one that a plugin lists.
type Device struct {
	ID      string
	Healthy bool
	NUMA    []int64 // the nodes it is near; nil: none is known
}

// Grant is what a container has of one resource. It never changes.
type Grant struct {
	Resource string
	IDs      []string           // sorted
	NUMA     map[string][]int64 // by ID; of those that have any
	// Response is what the plugin wants the container to have for them; nil: it was
	// not asked.
	Response *v1beta1.ContainerAllocateResponse
	// Prepares says that the plugin is to be called before each start.
	Prepares bool
}

// given are a pod's grants, by container and resource.
type given map[string]map[string]Grant

// ids are the devices that a container has of a resource.
func (g given) ids(container, resource string) []string { return g[container][resource].IDs }

// of are a container's grants in the order of their resources.
func (g given) of(container string) []Grant {
	var all []Grant
	for _, resource := range slices.Sorted(maps.Keys(g[container])) {
		all = append(all, g[container][resource])
	}
	return all
}

func (g given) put(container string, grant Grant) {
	if g[container] == nil {
		g[container] = map[string]Grant{}
	}
	g[container][grant.Resource] = grant
}

func (g given) drop(container, resource string) {
	delete(g[container], resource)
	if len(g[container]) == 0 {
		delete(g, container)
	}
}
