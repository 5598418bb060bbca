package state

import (
	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// applyResize records the result of resizing a container.
func (t *transition) applyResize(a plan.ResizeContainer, f result.Result) {
	if !f.IsFor(t.PlanInput.Desired) {
		return
	}
	if f.Err != nil {
		t.changeContainer(a.Container, func(h *plan.ContainerHistory) { h.ResizeFailure = nextFailure(h.ResizeFailure, f, "") })
		return
	}
	t.changeContainer(a.Container, func(h *plan.ContainerHistory) { h.ResizeFailure = plan.Failure{} })
	t.recordSize(a.ID, plan.Size{Value: f.Version.ContainerHashes[a.Container].Resources})
}

// applyPodResize records the result of resizing a pod's cgroup.
func (t *transition) applyPodResize(a plan.ResizePod, f result.Result) {
	switch {
	case !f.IsFor(t.PlanInput.Desired):
	case f.Err != nil:
		t.PlanInput.History.ResizePodFailure = nextFailure(t.PlanInput.History.ResizePodFailure, f, "")
	default:
		t.PlanInput.History.ResizePodFailure = plan.Failure{}
		t.recordSize(a.SandboxID, plan.Size{Value: f.Version.PodSize()})
	}
}

// recordSize records the size of the container or sandbox with ID id in the history, because its
// annotations contain only the size with which it was created.
func (t *transition) recordSize(id string, size plan.Size) {
	t.PlanInput.History.Sizes = withKey(t.PlanInput.History.Sizes, id, size)
	t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
}

// recordUncertainSizes records which sizes are uncertain while action a runs. It is called
// before a begins.
func (t *transition) recordUncertainSizes(a plan.Action) {
	for id, size := range plan.UncertainSizes(&t.PlanInput, a) {
		t.recordSize(id, size)
	}
}

// retryResize must be called before p replaces the version in force. p must be the same version;
// its containers and sizes may differ. If they differ, retryResize forgets failed resizes, because
// these were resizes to another size. It also removes the eviction of the pod, and an end of the
// pod that does not apply to p.
func (t *transition) retryResize(p *manifest.Pod) {
	if EqualSize(p, t.PlanInput.Desired) {
		return
	}
	h := &t.PlanInput.History
	h.ResizePodFailure = plan.Failure{}
	for name := range h.Containers {
		t.changeContainer(name, func(c *plan.ContainerHistory) { c.ResizeFailure = plan.Failure{} })
	}
	if t.PlanInput.Eviction = nil; h.Finished != nil && !h.Finished.AppliesTo(p) {
		h.Finished = nil
		t.resetStartTime()
	}
}
