package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resizableResources lists the resources that can be resized while a container runs.
var resizableResources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}

// FormatSize returns a size: the requests and limits of cpu and memory as text, such as
// "cpu=100m/1 memory=32Mi/". An amount that is not set is empty.
func FormatSize(r v1.ResourceRequirements) string {
	parts := make([]string, 0, len(resizableResources))
	for _, name := range resizableResources {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", name, formatAmount(r.Requests, name), formatAmount(r.Limits, name)))
	}
	return strings.Join(parts, " ")
}

// inheritedPrefix precedes the name of a resource in the size of a container that inherits a pod-level
// limit.
const inheritedPrefix = "inherited-"

// formatContainerSize returns the size of a container: the result of FormatSize, and the limits of cpu
// and memory that the container inherits from the pod-level resources, such as
// " inherited-memory=100Mi". A container inherits a limit if it sets none.
func formatContainerSize(spec *v1.PodSpec, r v1.ResourceRequirements) string {
	size := FormatSize(r)
	if spec.Resources == nil {
		return size
	}
	for _, name := range resizableResources {
		ownLimit, podLimit := r.Limits[name], spec.Resources.Limits[name]
		if ownLimit.IsZero() && !podLimit.IsZero() {
			size += fmt.Sprintf(" %s%s=%s", inheritedPrefix, name, podLimit.String())
		}
	}
	return size
}

func formatAmount(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return ""
	}
	return q.String()
}

// ParseSize returns the requests and limits from a size that FormatSize has returned. It ignores zero
// and invalid amounts.
func ParseSize(size string) v1.ResourceRequirements {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	amounts := parseSize(size)
	for _, name := range resizableResources {
		request, limit, _ := strings.Cut(amounts[name], "/")
		if q, err := resource.ParseQuantity(request); err == nil && q.Sign() > 0 {
			r.Requests[name] = q
		}
		if q, err := resource.ParseQuantity(limit); err == nil && q.Sign() > 0 {
			r.Limits[name] = q
		}
	}
	return r
}

// WithSize returns a copy of r in which the cpu and memory of a size (FormatSize) replace the cpu
// and memory of r.
func WithSize(r v1.ResourceRequirements, size string) v1.ResourceRequirements {
	r = *r.DeepCopy()
	newSize := ParseSize(size)
	r.Requests, r.Limits = replaceResizable(r.Requests, newSize.Requests), replaceResizable(r.Limits, newSize.Limits)
	return r
}

// replaceResizable replaces the amounts of resizable resources in list by the amounts in the
// parameter amounts. list may be nil.
func replaceResizable(list, amounts v1.ResourceList) v1.ResourceList {
	if list == nil {
		list = v1.ResourceList{}
	}
	for _, name := range resizableResources {
		delete(list, name)
	}
	maps.Copy(list, amounts)
	return list
}

// PodSize returns the size (FormatSize) of the whole pod.
func (p *Pod) PodSize() string {
	return FormatSize(v1.ResourceRequirements{Requests: PodRequests(p.Object), Limits: PodLimits(p.Object)})
}

// HasSizesOf reports whether p and q have the same size (FormatSize) and each container has the
// same size in both. p and q must be the same version of a pod.
func (p *Pod) HasSizesOf(q *Pod) bool {
	haveSameSize := func(a, b ContainerHash) bool { return a.Resources == b.Resources }
	return p == q || p.PodSize() == q.PodSize() && maps.EqualFunc(p.ContainerHashes, q.ContainerHashes, haveSameSize)
}

// ResizedResources returns the resources in which two sizes of a container differ. An inherited limit
// that is missing in oldSize causes no difference, because an older podd recorded no such limits.
func ResizedResources(oldSize, newSize string) []v1.ResourceName {
	oldAmounts, newAmounts := parseSize(oldSize), parseSize(newSize)
	return slices.DeleteFunc(slices.Clone(resizableResources), func(name v1.ResourceName) bool {
		inheritedLimit, isRecorded := oldAmounts[inheritedPrefix+name]
		return oldAmounts[name] == newAmounts[name] && (!isRecorded || inheritedLimit == newAmounts[inheritedPrefix+name])
	})
}

// parseSize returns the part after "=" of each resource in a size, and of each inherited limit.
func parseSize(size string) map[v1.ResourceName]string {
	amounts := map[v1.ResourceName]string{}
	for _, part := range strings.Fields(size) {
		name, requestAndLimit, _ := strings.Cut(part, "=")
		amounts[v1.ResourceName(name)] = requestAndLimit
	}
	return amounts
}

// WithSizes returns a copy of p with the given sizes of containers by name, or p itself if no size
// differs. It ignores a size that is not valid for its container. The pod-level limits of the copy are
// those that the containers inherit.
func (p *Pod) WithSizes(sizes map[string]string) *Pod {
	resizedPod := p
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			name := list[i].Name
			r, ok := resize(list[i].Resources, sizes[name])
			if !ok {
				continue
			}
			spec := withInheritedLimits(&p.Object.Spec, sizes[name])
			size := formatContainerSize(spec, r)
			if size == p.ContainerHashes[name].Resources {
				continue
			}
			if resizedPod == p {
				resizedPod = p.clone()
			}
			findContainer(&resizedPod.Object.Spec, name).Resources = r
			if spec != &p.Object.Spec {
				resizedPod.Object.Spec.Resources = spec.Resources
			}
			resizedPod.ContainerHashes[name] = ContainerHash{StartHash: p.ContainerHashes[name].StartHash, Resources: size}
		}
	}
	return resizedPod
}

// withInheritedLimits returns a spec with the pod-level resources of spec, except for the limits in
// size that a container inherits. It returns spec itself if size contains no inherited limit.
func withInheritedLimits(spec *v1.PodSpec, size string) *v1.PodSpec {
	amounts := parseSize(size)
	result := spec
	for _, name := range resizableResources {
		q, err := resource.ParseQuantity(amounts[inheritedPrefix+name])
		if err != nil || spec.Resources == nil || spec.Resources.Limits == nil {
			continue
		}
		if result == spec {
			result = &v1.PodSpec{Resources: spec.Resources.DeepCopy()}
		}
		result.Resources.Limits[name] = q
	}
	return result
}

// findContainer returns the init or regular container with this name. The container must
// exist.
func findContainer(spec *v1.PodSpec, name string) *v1.Container {
	hasName := func(c v1.Container) bool { return c.Name == name }
	if i := slices.IndexFunc(spec.Containers, hasName); i >= 0 {
		return &spec.Containers[i]
	}
	return &spec.InitContainers[slices.IndexFunc(spec.InitContainers, hasName)]
}

func (p *Pod) clone() *Pod {
	podCopy := *p
	podCopy.Object, podCopy.ContainerHashes = p.Object.DeepCopy(), maps.Clone(p.ContainerHashes)
	return &podCopy
}

// resize returns r with the amounts in size (FormatSize). ok is false if size contains an invalid
// amount, or if size and r do not set the same requests and limits.
func resize(r v1.ResourceRequirements, size string) (resized v1.ResourceRequirements, ok bool) {
	r = *r.DeepCopy()
	amounts := parseSize(size)
	for _, name := range resizableResources {
		request, limit, ok := strings.Cut(amounts[name], "/")
		if !ok || !setAmount(r.Requests, name, request) || !setAmount(r.Limits, name, limit) {
			return r, false
		}
	}
	return r, true
}

// setAmount parses text and sets the amount of a resource in list. It reports whether text is
// valid. If list does not contain the resource, only "" is valid. Otherwise only an amount is
// valid.
func setAmount(list v1.ResourceList, name v1.ResourceName, text string) bool {
	if _, isSet := list[name]; !isSet {
		return text == ""
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return false
	}
	list[name] = q
	return true
}

// containerSizes returns the size (formatContainerSize) of every init and regular container, by name.
func containerSizes(spec *v1.PodSpec) map[string]string {
	sizes := map[string]string{}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			sizes[list[i].Name] = formatContainerSize(spec, list[i].Resources)
		}
	}
	return sizes
}

// RestartsToResize reports whether the resizePolicy of a container requires a restart for a
// change between two of its sizes.
func RestartsToResize(c *v1.Container, oldSize, newSize string) bool {
	for _, name := range ResizedResources(oldSize, newSize) {
		for _, p := range c.ResizePolicy {
			if p.ResourceName == name && p.RestartPolicy == v1.RestartContainer {
				return true
			}
		}
	}
	return false
}
