package plan

import (
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
	return in.Desired.Sized(in.AllocatedSizes())
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
	return p.Sized(Sizes(p, in.Observed, in.History.Sizes, true))
}

// Sizes returns the sizes of the newest containers of a version by name, or only of the
// running ones. given contains sizes by ID, as History.Sizes.
func Sizes(p *manifest.Pod, observed []runtime.Incarnation, given map[string]string, running bool) map[string]string {
	newest := map[string]*runtime.Container{}
	for i := range observed {
		if !Runs(p, &observed[i]) {
			continue
		}
		for j := range observed[i].Containers {
			c := &observed[i].Containers[j]
			if have := newest[c.Name]; !c.CutShort() && (have == nil || c.Attempt > have.Attempt) {
				newest[c.Name] = c
			}
		}
	}
	sizes := map[string]string{}
	for name, c := range newest {
		if !running || c.State == runtime.Running || c.State == runtime.Unknown {
			sizes[name] = sizeOf(given, c.ID, c.Annotations)
		}
	}
	return sizes
}

// sizeOf returns the size of a container or sandbox; "" if it is unknown.
func sizeOf(given map[string]string, id string, annotations map[string]string) string {
	if size, ok := given[id]; ok {
		return strings.TrimPrefix(size, uncertainPrefix)
	}
	return annotations[runtime.AnnotationSize]
}

// uncertainPrefix is a prefix in History.Sizes of the size that a container had before a resize
// with an unknown result.
const uncertainPrefix = "perhaps no more "

// Doubts returns the entries for History.Sizes that must be set before an action begins:
// the sizes that it changes are uncertain until its result is known. It returns nil if
// there are none.
func Doubts(in *Input, a Action) map[string]string {
	inc := in.current()
	if inc == nil {
		return nil
	}
	doubts := map[string]string{}
	switch a := a.(type) {
	case ResizePod:
		doubts[a.SandboxID] = roomForTwo
	case ResizeContainer:
		for i := range inc.Containers {
			if c := &inc.Containers[i]; c.ID == a.ID {
				doubts[a.ID] = uncertainPrefix + sizeOf(in.History.Sizes, c.ID, c.Annotations)
			}
		}
		doubts[inc.ID] = roomForTwo
	case StartContainer: // its pod's cgroup may be too small for it
		if Unsized(in) {
			doubts[inc.ID] = roomForTwo
		}
	}
	return doubts
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

// roomForTwo is the entry in History.Sizes for a sandbox with a cgroup that was enlarged
// for a resize. It is not a size, so the pod is resized to its own size later, whatever the
// result of the resize was.
const roomForTwo = "room for two sizes"

// Unsized reports whether a running container or the pod does not have its desired size
// yet.
func Unsized(in *Input) bool {
	if in.Desired == nil {
		return false
	}
	for _, size := range []*manifest.Pod{Allocated(in), Actual(in)} {
		if size != in.Desired {
			return true
		}
	}
	inc := in.current()
	return inc != nil && sizeDiffers(sizeOf(in.History.Sizes, inc.ID, inc.Annotations), in.Desired.PodSize())
}
