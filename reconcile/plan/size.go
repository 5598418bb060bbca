package plan

import (
	"strings"

	"podd/manifest"
	"podd/runtime"
)

// A pod's containers have sizes, their cpu and memory, which change while they
// run:
//
//	written ── admitted ──▶ allocated ── resized ──▶ actual
//
// Written is Desired. Allocated is what containers are started with and resized
// to: what is written or, while the node does not admit that, what each has. Of
// actual sizes nobody but the runtime knows, and it does not always tell: they
// are what a container was made with, or given since.

// Allocated is Desired in the sizes that its containers are to have. While a
// newer version waits, nothing is resized. nil for no Desired.
func Allocated(in *Input) *manifest.Pod {
	if in.Desired == nil || !in.holdsSizes() {
		return in.Desired
	}
	return in.Desired.Sized(in.AllocatedSizes())
}

// holdsSizes: what is written is not to be given yet.
func (in *Input) holdsSizes() bool { return in.Successor != nil || in.Verdict.Answer != Admit }

// AllocatedSizes are those that the containers of Desired are to keep, by name,
// for History.Allocated; nil while they are to have what is written.
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

// Actual is Allocated in the sizes that what runs of it has.
func Actual(in *Input) *manifest.Pod {
	p := Allocated(in)
	if p == nil {
		return nil
	}
	return p.Sized(Sizes(p, in.Observed, in.History.Sizes, true))
}

// Sizes are those that the newest containers of a version have, by name; with
// running only of those that run. given has sizes by ID, as History.Sizes.
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

// sizeOf is the size of a container or sandbox; "" when nothing tells.
func sizeOf(given map[string]string, id string, annotations map[string]string) string {
	if size, ok := given[id]; ok {
		return strings.TrimPrefix(size, unsure)
	}
	return annotations[runtime.AnnotationSize]
}

// unsure is before the size that a container had when another one was asked for,
// in History.Sizes, until it is known what came of that.
const unsure = "perhaps no more "

// Doubts are for History.Sizes before an action begins: of what it changes no size
// is certain until its end is known, whatever is wanted by then. nil for none.
func Doubts(in *Input, a Action) map[string]string {
	inc := in.current()
	if inc == nil {
		return nil
	}
	doubts := map[string]string{}
	switch a := a.(type) {
	case ResizePod:
		doubts[a.SandboxID] = RoomForTwo
	case ResizeContainer:
		for i := range inc.Containers {
			if c := &inc.Containers[i]; c.ID == a.ID {
				doubts[a.ID] = unsure + sizeOf(in.History.Sizes, c.ID, c.Annotations)
			}
		}
		doubts[inc.ID] = RoomForTwo
	case StartContainer: // in a pod whose cgroup may have room for less
		if Unsized(in) {
			doubts[inc.ID] = RoomForTwo
		}
	}
	return doubts
}

// current is the sandbox that Desired runs in; nil for none.
func (in *Input) current() *runtime.Incarnation {
	for i := range in.Observed {
		if inc := &in.Observed[i]; inc.Ready && Runs(in.Desired, inc) {
			return inc
		}
	}
	return nil
}

// RoomForTwo is what History.Sizes has of a sandbox whose cgroup was widened for
// a resize: no size, so that the pod is brought to its own in the end, whatever
// became of the resize.
const RoomForTwo = "room for two sizes"

// Unsized says that what runs of the pod has not the size yet that is written.
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
	return inc != nil && differ(sizeOf(in.History.Sizes, inc.ID, inc.Annotations), in.Desired.PodSize())
}
