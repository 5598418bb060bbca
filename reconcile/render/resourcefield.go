package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"podd/manifest"
)

// resourceValue returns a container's request or limit in units of the divisor, rounded up. If the
// container has no limit, resourceValue returns the limit of the pod (KEP-2837), or the allocatable
// resources of the node if the pod has none, either. If the container has no request, resourceValue
// returns 0.
func resourceValue(in *ContainerInput, ref *v1.ResourceFieldSelector) (string, error) {
	c := in.Container
	if ref.ContainerName != "" {
		if c = findContainer(&in.Pod.Object.Spec, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef: the pod has no container %q", ref.ContainerName)
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	resourceName := v1.ResourceName(name)
	var q resource.Quantity
	switch kind {
	case "requests":
		q = c.Resources.Requests[resourceName]
	case "limits":
		q = effectiveLimit(c, &in.Pod.Object.Spec, resourceName, in.Node.allocatable())
	default:
		return "", fmt.Errorf("resourceFieldRef: %s is neither a request nor a limit", ref.Resource)
	}
	switch {
	case resourceName == v1.ResourceCPU:
		return divideRoundUp(q.MilliValue(), ref.Divisor.MilliValue(), 1000), nil
	case resourceName == v1.ResourceMemory, resourceName == v1.ResourceEphemeralStorage,
		strings.HasPrefix(name, v1.ResourceHugePagesPrefix):
		return divideRoundUp(q.Value(), ref.Divisor.Value(), 1), nil
	}
	return "", fmt.Errorf("resourceFieldRef: %s is not a resource of the downward API", ref.Resource)
}

// effectiveLimit returns the limit that the downward API reports for a container. If the container
// has no limit for huge pages, the result is 0, because huge pages are never overcommitted.
func effectiveLimit(c *v1.Container, pod *v1.PodSpec, name v1.ResourceName, node Resources) resource.Quantity {
	if q := c.Resources.Limits[name]; !q.IsZero() || manifest.IsHugePagesResource(name) {
		return q
	}
	if pod.Resources != nil && resourcehelper.IsSupportedPodLevelResource(name) {
		if q := pod.Resources.Limits[name]; !q.IsZero() {
			return q
		}
	}
	switch name {
	case v1.ResourceCPU:
		return *resource.NewMilliQuantity(node.MilliCPU, resource.DecimalSI)
	case v1.ResourceMemory:
		return *resource.NewQuantity(node.Memory, resource.BinarySI)
	case v1.ResourceEphemeralStorage:
		return *resource.NewQuantity(node.EphemeralStorage, resource.BinarySI)
	}
	return c.Resources.Limits[name]
}

// divideRoundUp returns value divided by divisor, rounded up. If the manifest specifies no divisor,
// divisor is 0, and divideRoundUp uses defaultDivisor.
func divideRoundUp(value, divisor, defaultDivisor int64) string {
	if divisor == 0 {
		divisor = defaultDivisor
	}
	return strconv.FormatInt(int64(math.Ceil(float64(value)/float64(divisor))), 10)
}

func findContainer(spec *v1.PodSpec, name string) *v1.Container {
	for _, list := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
