package pressure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names of the annotations of the event for an eviction, as in a kubelet.
const (
	annotationResource        = "starved_resource"
	annotationPod             = "offending_pod"
	annotationPodUsage        = "offending_pod_usage"
	annotationContainers      = "offending_containers"
	annotationContainersUsage = "offending_containers_usage"
)

// DescribeEviction returns the message of a pod that is evicted because of m, in the words of a
// kubelet: the resource, the limit, the available amount, and each container that uses more than it
// requests. annotations contains the same facts for programs, except the amounts of the node. If the
// usage of the pod is unknown, annotations contains only the resource.
func DescribeEviction(m MetThreshold, c Candidate) (message string, annotations map[string]string) {
	name := m.Signal.Resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ", name, m.formatQuantity(), m.FormatAvailable())
	annotations = map[string]string{annotationResource: string(name)}
	if c.Usage == nil {
		return b.String(), annotations
	}
	if request, ok := podLevelRequest(c.Pod, name); ok && name == v1.ResourceMemory {
		usage := formatBytes(c.Usage.MemoryBytes)
		fmt.Fprintf(&b, "Pod %s was using %s, request is %s, has larger consumption of %s. ", c.Pod.Name, usage, request.String(), name)
		annotations[annotationPod], annotations[annotationPodUsage] = c.Pod.Name, usage
	}
	var containers, amounts []string
	for _, u := range c.Usage.Containers {
		spec := findContainer(&c.Pod.Spec, u.Name)
		bytes, counted := u.amount(name)
		if spec == nil || !counted {
			continue
		}
		if request := spec.Resources.Requests[name]; bytes > request.Value() {
			usage := formatBytes(bytes)
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ", u.Name, usage, request.String(), name)
			containers, amounts = append(containers, u.Name), append(amounts, usage)
		}
	}
	annotations[annotationContainers], annotations[annotationContainersUsage] = strings.Join(containers, ","), strings.Join(amounts, ",")
	return b.String(), annotations
}

// amount returns the usage of a resource. isMeasured is false for a resource that is not measured
// by container.
func (u *ContainerUsage) amount(name v1.ResourceName) (usage int64, isMeasured bool) {
	switch name {
	case v1.ResourceMemory:
		return u.MemoryBytes, true
	case v1.ResourceEphemeralStorage:
		return u.DiskBytes, true
	}
	return 0, false
}

// podLevelRequest returns the request in spec.resources of the pod.
func podLevelRequest(pod *v1.Pod, name v1.ResourceName) (resource.Quantity, bool) {
	if pod.Spec.Resources == nil {
		return resource.Quantity{}, false
	}
	q, ok := pod.Spec.Resources.Requests[name]
	return q, ok
}

// findContainer returns the regular container or init container with this name; nil if there is
// none. Ephemeral containers cannot have requests, and are not named in messages.
func findContainer(spec *v1.PodSpec, name string) *v1.Container {
	for _, list := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		if i := slices.IndexFunc(list, func(c v1.Container) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// String describes the available amount and the threshold for users.
func (m MetThreshold) String() string {
	return fmt.Sprintf("%s: %s available, threshold %s", m.Signal, m.FormatAvailable(), m.FormatThreshold())
}

// FormatAvailable returns the available amount as a quantity, rounded down.
func (m MetThreshold) FormatAvailable() string {
	unit := m.displayUnit(m.Available)
	return m.format(m.Available / unit * unit)
}

// formatQuantity returns the limit as a quantity. It is rounded up, so that a limit above the available
// amount is never shown as equal to it.
func (m MetThreshold) formatQuantity() string {
	unit := m.displayUnit(m.Quantity)
	return m.format((m.Quantity + unit - 1) / unit * unit)
}

// FormatThreshold returns the limit as a quantity. If the limit is configured as a share of the
// capacity, FormatThreshold adds the percentage, as in "812Mi (10%)".
func (m MetThreshold) FormatThreshold() string {
	if m.Limit.Share == 0 {
		return m.formatQuantity()
	}
	return m.formatQuantity() + " (" + m.Limit.String() + ")"
}

// displayUnit returns the unit to which n is rounded: the largest of 1Mi, 1Ki and 1 that changes n
// by at most a tenth. Counts are not rounded.
func (m MetThreshold) displayUnit(n int64) int64 {
	unit := int64(1)
	for !m.isCount() && unit < 1<<20 && n >= 10*unit<<10 {
		unit <<= 10
	}
	return unit
}

// isCount reports whether the amounts of m are numbers of inodes or processes, and not bytes.
func (m MetThreshold) isCount() bool {
	r := m.Signal.Resource()
	return r == ResourceInodes || r == ResourcePIDs
}

// format returns an amount of bytes as a quantity such as 50Mi, and a count as a plain number.
func (m MetThreshold) format(n int64) string {
	if m.isCount() {
		return strconv.FormatInt(n, 10)
	}
	return formatBytes(n)
}

func formatBytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
