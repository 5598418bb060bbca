package device

import (
	"maps"
	"slices"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A Device is a device that a plugin has listed.
type Device struct {
	ID      string
	Healthy bool
	NUMA    []int64 // the NUMA nodes of the device; nil if unknown
}

// A Grant contains the devices of a resource that are allocated to a container. It is immutable.
type Grant struct {
	Resource string
	IDs      []string           // sorted
	NUMA     map[string][]int64 // by device ID; only devices with known NUMA nodes
	// Response is the plugin's response to Allocate. It is nil if Allocate was not called yet.
	Response *v1beta1.ContainerAllocateResponse
	// RequiresPreStart reports whether the plugin must be called before each start of the container.
	RequiresPreStart bool
}

// A grantMap contains a pod's grants by container and resource.
type grantMap map[string]map[string]Grant

// ids returns the IDs of the devices of a resource that a container has.
func (g grantMap) ids(container, resource string) []string { return g[container][resource].IDs }

// list returns a container's grants in the order of their resources.
func (g grantMap) list(container string) []Grant {
	var grants []Grant
	for _, resource := range slices.Sorted(maps.Keys(g[container])) {
		grants = append(grants, g[container][resource])
	}
	return grants
}

func (g grantMap) put(container string, grant Grant) {
	if g[container] == nil {
		g[container] = map[string]Grant{}
	}
	g[container][grant.Resource] = grant
}

func (g grantMap) drop(container, resource string) {
	delete(g[container], resource)
	if len(g[container]) == 0 {
		delete(g, container)
	}
}
