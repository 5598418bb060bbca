package plan

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// The size of a container is its cpu and memory, which can change while the container runs:
//
//	desired ── the node admits it ──▶ allocated ── podd resizes the container ──▶ actual
//
// The desired size is in Input.Desired. The allocated size is the size with which a container is
// started and to which it is resized. It equals the desired size. While the node does not admit the
// desired size, it is the size that the container already has. The actual size is the size of the
// container in the runtime. The runtime does not always report the size. Therefore podd uses the
// size with which the container was created or last resized.

// WithAllocatedSizes returns in.Desired with the allocated sizes; nil if in.Desired is nil. While a
// newer version waits, containers keep their sizes.
func WithAllocatedSizes(in *Input) *manifest.Pod {
	if in.Desired == nil || !in.keepsSizes() {
		return in.Desired
	}
	return in.Desired.WithSizes(in.AllocatedSizes())
}

// keepsSizes reports whether the containers keep their sizes. This is the case if a newer version
// waits, or if the node does not admit the desired sizes.
func (in *Input) keepsSizes() bool { return in.Successor != nil || in.Verdict.Answer != Admit }

// AllocatedSizes returns the new value of History.AllocatedSizes: the sizes that the containers of
// Desired keep, by name; nil if the desired sizes apply.
func (in *Input) AllocatedSizes() map[string]string {
	if in.Desired == nil || !in.keepsSizes() {
		return nil
	}
	sizes := ContainerSizes(in.Desired, in.Observed, in.History.Sizes, false)
	for name, size := range in.History.AllocatedSizes {
		if _, ok := sizes[name]; !ok {
			sizes[name] = size
		}
	}
	return sizes
}

// WithActualSizes returns the result of WithAllocatedSizes, except that running containers have
// their actual sizes.
func WithActualSizes(in *Input) *manifest.Pod {
	p := WithAllocatedSizes(in)
	if p == nil {
		return nil
	}
	return p.WithSizes(ContainerSizes(p, in.Observed, in.History.Sizes, true))
}

// PodResources returns the allocated requests and the actual resources of the whole pod (fields
// allocatedResources and resources of v1.PodStatus). The actual cpu and memory are those of the
// pod's cgroup. During a resize, they are the values from before the resize. If the cgroup does not
// exist, they are the allocated cpu and memory.
func PodResources(in *Input) (allocated v1.ResourceList, actual *v1.ResourceRequirements) {
	pod := WithAllocatedSizes(in).Object
	allocatedResources := v1.ResourceRequirements{Requests: manifest.PodRequests(pod), Limits: manifest.PodLimits(pod)}
	actual = &allocatedResources
	if inc := in.readyIncarnation(); inc != nil {
		if size := recordedSize(in.History.Sizes, inc.ID, inc.Annotations).Value; size != "" {
			actualResources := manifest.WithSize(allocatedResources, size)
			actual = &actualResources
		}
	}
	if in.keepsSizes() {
		return actual.Requests, actual
	}
	return allocatedResources.Requests, actual
}

// ContainerSizes returns the sizes of the newest containers of version p, by name. If runningOnly
// is true, it omits containers that do not run. recordedSizes contains sizes by ID, as in
// History.Sizes.
func ContainerSizes(p *manifest.Pod, observed []runtime.Incarnation, recordedSizes map[string]Size, runningOnly bool) map[string]string {
	containers := map[string]*runtime.Container{}
	for i := range observed {
		if !IsCreatedFrom(&observed[i], p) {
			continue
		}
		for j := range observed[i].Containers {
			c := &observed[i].Containers[j]
			if newest := containers[c.Name]; !c.WasStartInterrupted() && (newest == nil || c.Attempt > newest.Attempt) {
				containers[c.Name] = c
			}
		}
	}
	sizes := map[string]string{}
	for name, c := range containers {
		if !runningOnly || c.State == runtime.Running || c.State == runtime.Unknown {
			sizes[name] = recordedSize(recordedSizes, c.ID, c.Annotations).Value
		}
	}
	return sizes
}

// recordedSize returns the size of a container or sandbox: its size in recordedSizes or, if there
// is none, its size in annotations.
func recordedSize(recordedSizes map[string]Size, id string, annotations map[string]string) Size {
	if size, ok := recordedSizes[id]; ok {
		return size
	}
	return Size{Value: annotations[runtime.AnnotationSize]}
}

// A Size is the size of a container or sandbox. The zero value means that the size is unknown,
// because an older podd that does not record sizes has created the container or sandbox.
type Size struct {
	// Value has the format of runtime.AnnotationSize. If the size is uncertain, Value is the
	// size before the resize; it may be "".
	Value string
	// Uncertain reports whether a resize has begun and its result is unknown. If the size of a
	// sandbox is uncertain, its cgroup may have room for the old and the new size of a container.
	// Therefore the cgroup is always resized to the pod's size afterwards.
	Uncertain bool
}

// differs reports whether a container or sandbox whose recorded size is s must be resized to the
// given size. It returns false if the recorded size is unknown.
func (s Size) differs(size string) bool { return s.Uncertain || s.Value != "" && s.Value != size }

// uncertainSize is the JSON form of an uncertain Size. The JSON form of other sizes is Value.
type uncertainSize struct {
	Before string `json:"before,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s Size) MarshalJSON() ([]byte, error) {
	if s.Uncertain {
		return json.Marshal(uncertainSize{s.Value})
	}
	return json.Marshal(s.Value)
}

// UnmarshalJSON implements json.Unmarshaler. It also decodes uncertain sizes in the formats of
// earlier versions of podd.
func (s *Size) UnmarshalJSON(data []byte) error {
	var uncertain uncertainSize
	if json.Unmarshal(data, &uncertain) == nil {
		*s = Size{uncertain.Before, true}
		return nil
	}
	var value string
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	*s = Size{Value: value}
	if oldSize, ok := strings.CutPrefix(value, "perhaps no more "); ok {
		*s = Size{oldSize, true}
	} else if value == "room for two sizes" {
		*s = Size{Uncertain: true}
	}
	return nil
}

// UncertainSizes returns the sizes that are uncertain while action a is in progress, by container
// or sandbox ID. The caller must record them in History.Sizes before a begins.
func UncertainSizes(in *Input, a Action) map[string]Size {
	inc := in.readyIncarnation()
	if inc == nil {
		return nil
	}
	sizes, pod := map[string]Size{}, Size{recordedSize(in.History.Sizes, inc.ID, inc.Annotations).Value, true}
	switch a := a.(type) {
	case ResizePod:
		sizes[a.SandboxID] = pod
	case ResizeContainer:
		for i := range inc.Containers {
			if c := &inc.Containers[i]; c.ID == a.ID {
				sizes[a.ID] = Size{recordedSize(in.History.Sizes, c.ID, c.Annotations).Value, true}
			}
		}
		sizes[inc.ID] = pod
	case StartContainer: // the start enlarges the pod's cgroup, so its size is uncertain if a resize is pending
		if IsResizePending(in) {
			sizes[inc.ID] = pod
		}
	}
	return sizes
}

// readyIncarnation returns the ready incarnation of in.Desired; nil if there is none.
func (in *Input) readyIncarnation() *runtime.Incarnation {
	for i := range in.Observed {
		if inc := &in.Observed[i]; inc.Ready && IsCreatedFrom(inc, in.Desired) {
			return inc
		}
	}
	return nil
}

// IsResizePending reports whether a running container or the cgroup of the pod does not have its
// desired size yet.
func IsResizePending(in *Input) bool {
	if in.Desired == nil {
		return false
	}
	for _, size := range []*manifest.Pod{WithAllocatedSizes(in), WithActualSizes(in)} {
		if size != in.Desired {
			return true
		}
	}
	inc := in.readyIncarnation()
	return inc != nil && recordedSize(in.History.Sizes, inc.ID, inc.Annotations).differs(in.Desired.PodSize())
}
