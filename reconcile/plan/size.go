package plan

import (
	"encoding/json"
	"strings"

	"podd/manifest"
	"podd/runtime"
)

// A pod's containers have sizes, which are their cpu and memory and can change while they
// run:
//
//	desired ── admitted ──▶ allocated ── resized ──▶ actual
//
// The desired size is in Desired. The allocated size is the one with which containers are
// started and to which they are resized: the desired one or, while the node does not admit
// that, the one that each has. The actual size is known to the runtime, which does not
// always report it; podd uses the size from the creation or the last resize.

// Allocated returns Desired with the allocated sizes. While a newer version waits, nothing
// is resized. It returns nil if Desired is nil.
func Allocated(in *Input) *manifest.Pod {
	if in.Desired == nil || !in.holdsSizes() {
		return in.Desired
	}
	return in.Desired.WithSizes(in.AllocatedSizes())
}

// holdsSizes reports whether the desired sizes must not be applied yet.
func (in *Input) holdsSizes() bool { return in.Successor != nil || in.Verdict.Answer != Admit }

// AllocatedSizes returns the sizes that the containers of Desired must keep, by name, for
// History.Allocated; nil if the desired sizes apply.
func (in *Input) AllocatedSizes() map[string]string {
	if in.Desired == nil || !in.holdsSizes() {
		return nil
	}
	sizes := Sizes(in.Desired, in.Observed, in.History.Sizes, false)
	for name, size := range in.History.Allocated {
		if _, seen := sizes[name]; !seen {
			sizes[name] = size
		}
	}
	return sizes
}

// Actual returns Allocated with the actual sizes of its running containers.
func Actual(in *Input) *manifest.Pod {
	p := Allocated(in)
	if p == nil {
		return nil
	}
	return p.WithSizes(Sizes(p, in.Observed, in.History.Sizes, true))
}

// Sizes returns the sizes of the newest containers of a version by name, or only of the
// running ones. given contains sizes by ID, as History.Sizes.
func Sizes(p *manifest.Pod, observed []runtime.Incarnation, given map[string]Size, running bool) map[string]string {
	newest := map[string]*runtime.Container{}
	for i := range observed {
		if !Runs(p, &observed[i]) {
			continue
		}
		for j := range observed[i].Containers {
			c := &observed[i].Containers[j]
			if have := newest[c.Name]; !c.StartInterrupted() && (have == nil || c.Attempt > have.Attempt) {
				newest[c.Name] = c
			}
		}
	}
	sizes := map[string]string{}
	for name, c := range newest {
		if !running || c.State == runtime.Running || c.State == runtime.Unknown {
			sizes[name] = recordedSize(given, c.ID, c.Annotations).Value
		}
	}
	return sizes
}

// recordedSize returns the size of a container or sandbox; given is as in Sizes.
func recordedSize(given map[string]Size, id string, annotations map[string]string) Size {
	if size, ok := given[id]; ok {
		return size
	}
	return Size{Value: annotations[runtime.AnnotationSize]}
}

// A Size is the size of a container or sandbox. The zero value is an unknown size: a podd
// that could not resize has created the container or sandbox.
type Size struct {
	// Value is as in runtime.AnnotationSize. While the size is uncertain, it is that before
	// the resize, or "".
	Value string
	// Uncertain reports that a resize began whose result is not known. For a sandbox, its
	// cgroup was enlarged to have room for the sizes before and after the resize. It is
	// resized to its own size later, whatever the result was.
	Uncertain bool
}

// differs reports whether a resize to size is needed. A container with an unknown size is
// not resized.
func (s Size) differs(size string) bool { return s.Uncertain || s.Value != "" && s.Value != size }

// uncertainSize is the JSON form of an uncertain Size. That of a certain one is its Value.
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

// UnmarshalJSON implements json.Unmarshaler. It also decodes the uncertain sizes that
// earlier versions of podd have written.
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
	if before, ok := strings.CutPrefix(value, "perhaps no more "); ok {
		*s = Size{before, true}
	} else if value == "room for two sizes" {
		*s = Size{Uncertain: true}
	}
	return nil
}

// UncertainSizes returns the entries for History.Sizes that must be set before an action begins:
// the sizes that it changes are uncertain until its result is known. It returns nil if
// there are none.
func UncertainSizes(in *Input, a Action) map[string]Size {
	inc := in.current()
	if inc == nil {
		return nil
	}
	sizes := map[string]Size{}
	switch a := a.(type) {
	case ResizePod:
		sizes[a.SandboxID] = Size{Uncertain: true}
	case ResizeContainer:
		for i := range inc.Containers {
			if c := &inc.Containers[i]; c.ID == a.ID {
				sizes[a.ID] = Size{recordedSize(in.History.Sizes, c.ID, c.Annotations).Value, true}
			}
		}
		sizes[inc.ID] = Size{Uncertain: true}
	case StartContainer: // its pod's cgroup may be too small for it
		if ResizePending(in) {
			sizes[inc.ID] = Size{Uncertain: true}
		}
	}
	return sizes
}

// current returns the sandbox in which Desired runs; nil if there is none.
func (in *Input) current() *runtime.Incarnation {
	for i := range in.Observed {
		if inc := &in.Observed[i]; inc.Ready && Runs(in.Desired, inc) {
			return inc
		}
	}
	return nil
}

// ResizePending reports whether a running container or the pod does not have its desired size
// yet.
func ResizePending(in *Input) bool {
	if in.Desired == nil {
		return false
	}
	for _, size := range []*manifest.Pod{Allocated(in), Actual(in)} {
		if size != in.Desired {
			return true
		}
	}
	inc := in.current()
	return inc != nil && recordedSize(in.History.Sizes, inc.ID, inc.Annotations).differs(in.Desired.PodSize())
}
