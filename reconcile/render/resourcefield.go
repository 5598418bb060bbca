package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourceValue is what the downward API says for a container's request or
// limit, in units of the divisor and rounded up. A limit that is not written is
// what pods may have of the node.
func resourceValue(in *ContainerInput, ref *v1.ResourceFieldSelector) (string, error) {
	c := in.Container
	if ref.ContainerName != "" {
		if c = findContainer(&in.Pod.Spec.Spec, ref.ContainerName); c == nil {
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
		q = limitOr(c, resourceName, in.Node.allocatable())
	default:
		return "", fmt.Errorf("resourceFieldRef: %s is neither a request nor a limit", ref.Resource)
	}
	switch {
	case resourceName == v1.ResourceCPU:
		return divide(q.MilliValue(), ref.Divisor.MilliValue(), 1000), nil
	case resourceName == v1.ResourceMemory, resourceName == v1.ResourceEphemeralStorage,
		strings.HasPrefix(name, v1.ResourceHugePagesPrefix):
		return divide(q.Value(), ref.Divisor.Value(), 1), nil
	}
	return "", fmt.Errorf("resourceFieldRef: %s is no resource of the downward API", ref.Resource)
}

func limitOr(c *v1.Container, name v1.ResourceName, node Resources) resource.Quantity {
	if q := c.Resources.Limits[name]; !q.IsZero() {
		return q
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

// divide rounds up; a divisor of 0 was not written and means one.
func divide(value, divisor, one int64) string {
	if divisor == 0 {
		divisor = one
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
