package device

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/device/allocation"
)

// versionOf returns the PodVersion that identifies p.
func versionOf(p *manifest.Pod) allocation.PodVersion {
	return allocation.PodVersion{Key: p.Key, UID: p.UID, Hash: p.Hash}
}

// A deviceRequest is the number of devices of a resource that a container requests.
type deviceRequest struct {
	container string
	resource  string
	n         int
}

// wrap returns an error with the request and its cause err.
func (a deviceRequest) wrap(err error) error {
	return fmt.Errorf("allocating %d of %s for container %s: %w", a.n, a.resource, a.container, err)
}

// maxDevices limits the number of devices in a request. It is more than any plugin can list.
const maxDevices = 1 << 20

// deviceRequests returns the requests of a pod in the order of their allocation: init
// containers first, because other containers can reuse their devices.
func deviceRequests(spec *v1.PodSpec) []deviceRequest {
	var requests []deviceRequest
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			limits := list[i].Resources.Limits
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				q := limits[name]
				if manifest.IsExtendedResource(name) && q.Sign() > 0 {
					requests = append(requests, deviceRequest{list[i].Name, string(name), int(min(q.Value(), maxDevices))})
				}
			}
		}
	}
	return requests
}

// reusableDevices returns the devices of a resource that earlier containers of the pod no longer
// need when the given container starts. The function devicesOf returns the devices of the resource
// that a container has.
func reusableDevices(spec *v1.PodSpec, container string, devicesOf func(container string) []string) []string {
	pool := sets.New[string]()
	for i := range spec.InitContainers {
		switch c := &spec.InitContainers[i]; {
		case c.Name == container:
			return pool.UnsortedList()
		case manifest.IsSidecar(c):
			pool.Delete(devicesOf(c.Name)...)
		default:
			pool.Insert(devicesOf(c.Name)...)
		}
	}
	for i := range spec.Containers {
		if spec.Containers[i].Name == container {
			break
		}
		pool.Delete(devicesOf(spec.Containers[i].Name)...)
	}
	return pool.UnsortedList()
}
