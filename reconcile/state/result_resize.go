package state

import (
	"time"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// applyResize records the result of resizing a container.
func (t *transition) applyResize(a plan.ResizeContainer, f result.Result) {
	if !f.IsFor(t.In.Desired) {
		return
	}
	if f.Err != nil {
		t.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = failed(h.Resize, f, "") })
		return
	}
	t.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = plan.Failure{} })
	t.recordSize(a.ID, plan.Size{Value: f.Version.Containers[a.Container].Size})
}

// applyPodResize records the result of resizing a pod's cgroup.
func (t *transition) applyPodResize(a plan.ResizePod, f result.Result) {
	switch {
	case !f.IsFor(t.In.Desired):
	case f.Err != nil:
		t.In.History.ResizePod = failed(t.In.History.ResizePod, f, "")
	default:
		t.In.History.ResizePod = plan.Failure{}
		t.recordSize(a.SandboxID, plan.Size{Value: f.Version.PodSize()})
	}
}

// recordSize records the size of the container or sandbox with ID id in the history, because its
// annotations contain only the size with which it was created.
func (t *transition) recordSize(id string, size plan.Size) {
	t.In.History.Sizes = with(t.In.History.Sizes, id, size)
	t.write(t.In.Desired.UID, t.In.Desired.Hash)
}

// recordUncertainSizes records which sizes are uncertain while action a runs. It is called
// before a begins.
func (t *transition) recordUncertainSizes(a plan.Action) {
	for id, size := range plan.UncertainSizes(&t.In, a) {
		t.recordSize(id, size)
	}
}

// retryResize is called before p, an equal version, replaces the version in force. If the sizes
// differ, retryResize makes failed resizes due now, and removes an eviction, and an end that does
// not apply to the new size.
func (t *transition) retryResize(p *manifest.Pod) {
	if EqualSize(p, t.In.Desired) {
		return
	}
	h := &t.In.History
	h.ResizePod.Until = time.Time{}
	for name := range h.Containers {
		t.container(name, func(c *plan.ContainerHistory) { c.Resize.Until = time.Time{} })
	}
	if t.In.Eviction = nil; h.Finished != nil && !h.Finished.AppliesTo(p) {
		h.Finished = nil
		t.resetStartTime()
	}
}
