package reconcile

import (
	"time"

	"podd/manifest"
	"podd/reconcile/plan"
)

func (w *worker) learnResize(a plan.ResizeContainer, f fact) {
	if !f.of(w.in.Desired) {
		return
	}
	if f.err != nil {
		w.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = failed(h.Resize, f, "") })
		return
	}
	w.container(a.Container, func(h *plan.ContainerHistory) { h.Resize = plan.Failure{} })
	w.noteSize(a.ID, f.version.Containers[a.Container].Size)
	w.said.resized("container " + a.Container)
}

func (w *worker) learnResizePod(a plan.ResizePod, f fact) {
	switch {
	case !f.of(w.in.Desired):
	case f.err != nil:
		w.in.History.ResizePod = failed(w.in.History.ResizePod, f, "")
	default:
		w.in.History.ResizePod = plan.Failure{}
		w.noteSize(a.SandboxID, f.version.PodSize())
		w.said.resized("pod")
	}
}

// noteSize: the annotations of what exists tell for ever what it was made with.
func (w *worker) noteSize(id, size string) {
	w.in.History.Sizes = with(w.in.History.Sizes, id, size)
	w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
}

// doubt notes, before an action begins, of what it changes the size.
func (w *worker) doubt(a plan.Action) {
	for id, size := range plan.Doubts(&w.in, a) {
		w.noteSize(id, size)
	}
}

// resizeAnew has nothing wait that failed for another size than that of p, and
// forgets that the pod was evicted in it.
func (w *worker) resizeAnew(p *manifest.Pod) {
	if sameSize(p, w.in.Desired) {
		return
	}
	h := &w.in.History
	h.ResizePod.Until = time.Time{}
	for name := range h.Containers {
		w.container(name, func(c *plan.ContainerHistory) { c.Resize.Until = time.Time{} })
	}
	if w.in.Evict = nil; h.Finished != nil && !h.Finished.Of(p) {
		h.Finished, h.StartTime = nil, time.Now()
	}
}
