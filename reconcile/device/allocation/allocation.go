// Package allocation defines the values that describe which devices of device plugins are
// available on the node and which are allocated to pods.
package allocation

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// A Count is the number of devices of one extended resource.
type Count struct {
	// Total is the number of healthy devices, plus the number of allocated devices that are not
	// healthy or not listed.
	Total int64
	// Listed is the number of devices that the device plugin lists, or listed before it disconnected
	// less than 5 minutes ago. Healthy is the number of these devices that are healthy; it is
	// zero if no plugin serves the resource.
	Listed, Healthy int64
	// IsServed reports whether a device plugin currently serves the resource.
	IsServed bool
	// IsAwaited reports whether a device plugin may soon serve the resource. None serves it
	// now, but podd was started, or a plugin registered or disconnected, only a short time ago.
	IsAwaited bool
}

// A PodVersion identifies the version of a pod to which devices are allocated.
type PodVersion struct {
	Key  types.NamespacedName
	UID  types.UID
	Hash string
}

// IDs contains the IDs of allocated devices by container name and resource name.
type IDs map[string]map[string][]string

// RecordedIDs returns the device IDs that are recorded in the annotations runtime.AnnotationDevices
// of an incarnation's containers. It ignores annotations that cannot be decoded, because podd did
// not write them.
func RecordedIDs(inc *runtime.Incarnation) IDs {
	var idsByContainer IDs
	for i := range inc.Containers {
		c := &inc.Containers[i]
		ids := ContainerIDs(c)
		if ids == nil {
			continue
		}
		if idsByContainer == nil {
			idsByContainer = IDs{}
		}
		idsByContainer[c.Name] = ids
	}
	return idsByContainer
}

// ContainerIDs returns the device IDs that are recorded in the annotation runtime.AnnotationDevices of
// a container, by resource; nil if there is no valid annotation.
func ContainerIDs(c *runtime.Container) map[string][]string {
	return decodeIDs[map[string][]string](c.Annotations[runtime.AnnotationDevices])
}

// SandboxIDs returns the device IDs that are recorded in the annotation runtime.AnnotationPodDevices
// of a sandbox; nil if there is no valid annotation.
func SandboxIDs(s *runtime.Sandbox) IDs {
	return decodeIDs[IDs](s.Annotations[runtime.AnnotationPodDevices])
}

// decodeIDs decodes the value of an annotation. It returns nil if the value is "" or invalid.
func decodeIDs[T ~map[string]V, V any](text string) T {
	var ids T
	if text == "" || json.Unmarshal([]byte(text), &ids) != nil {
		return nil
	}
	return ids
}

// UnhealthyDevices contains the IDs of the devices that their plugins report as unhealthy, sorted, by
// resource. It is immutable.
type UnhealthyDevices map[string][]string

// Has reports whether a device is unhealthy. u may be nil.
func (u *UnhealthyDevices) Has(resource, id string) bool {
	return u != nil && slices.Contains((*u)[resource], id)
}

// HasRecordedIDs reports whether a container of an incarnation has the annotation
// runtime.AnnotationDevices.
func HasRecordedIDs(inc *runtime.Incarnation) bool {
	return slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool { return c.Annotations[runtime.AnnotationDevices] != "" })
}
