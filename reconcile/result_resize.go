package reconcile

import (
	"time"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// applyResize records the result of resizing a container.
func (w *worker) applyResize(a plan.ResizeContainer, f effect.Result) {
	if !f.IsFor(w.in.Desired) {
		return
	}
	if f.Err != nil {
		w.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = failed(h.Resize, f, "") })
		return
	}
	w.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = plan.Failure{} })
	w.recordSize(a.ID, plan.Size{Value: f.Version.Containers[a.Container].Size})
	w.logged.resized("container " + a.Container)
}

// applyPodResize records the result of resizing a pod's cgroup.
func (w *worker) applyPodResize(a plan.ResizePod, f effect.Result) {
	switch {
	case !f.IsFor(w.in.Desired):
	case f.Err != nil:
		w.in.History.ResizePod = failed(w.in.History.ResizePod, f, "")
	default:
		w.in.History.ResizePod = plan.Failure{}
		w.recordSize(a.SandboxID, plan.Size{Value: f.Version.PodSize()})
		w.logged.resized("pod")
	}
}

// recordSize records the size of a container or sandbox in the history, because its
// annotations keep the size that it was created with.
func (w *worker) recordSize(id string, size plan.Size) {
	w.in.History.Sizes = with(w.in.History.Sizes, id, size)
	w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
}

// recordDoubts records, before an action begins, which sizes are uncertain while it runs.
func (w *worker) recordDoubts(a plan.Action) {
	for id, size := range plan.UncertainSizes(&w.in, a) {
		w.recordSize(id, size)
	}
}

// retryResize ends the waits after failures to resize to another size than that of p, and
// forgets that the pod was evicted in another size.
func (w *worker) retryResize(p *manifest.Pod) {
	if sameSize(p, w.in.Desired) {
		return
	}
	h := &w.in.History
	h.ResizePod.Until = time.Time{}
	for name := range h.Containers {
		w.container(name, func(c *plan.ContainerHistory) { c.Resize.Until = time.Time{} })
	}
	if w.in.Eviction = nil; h.Finished != nil && !h.Finished.AppliesTo(p) {
		h.Finished = nil
		w.resetStartTime()
	}
}
