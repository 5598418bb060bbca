package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// learn takes a fact into what the worker knows: observed state, directories
// and history. It reports whether the runtime must be asked what became of it.
// Attempts of probes are learnProbe's.
func (w *worker) learn(f fact) (ask bool) {
	if f.err != nil && makes(f.action) {
		// Nobody knows whether it was made, whatever the error says.
		w.in.Unseen, ask = true, true
	}
	if f.err != nil && errors.Is(f.err, context.Canceled) {
		return ask
	}
	switch a := f.action.(type) {
	case plan.EnsureImage:
		w.learnImage(a, f)
		return false
	case plan.PrepareVolumes:
		w.learnVolumes(f)
		return false
	case plan.UpdateVolumes:
		w.learnUpdate(f)
		return false
	case plan.CheckVolumes:
		w.learnCheck(a, f)
		return false
	case plan.RunSandbox:
		w.learnSandbox(f)
		return ask
	case plan.StartContainer:
		w.learnStart(a, f)
		return ask
	case plan.ResizeContainer:
		w.learnResize(a, f)
		return f.err != nil
	case plan.ResizePod:
		w.learnResizePod(a, f)
		return false
	case plan.PostStart, plan.PreStop:
		return w.learnHook(f)
	case plan.StopContainer:
		w.learnStop(a, f)
	}
	if f.err == nil {
		w.learnEnd(f)
	}
	w.learnCleanup(f)
	return f.err != nil
}

// makes says that an action makes a sandbox or a container.
func makes(a plan.Action) bool {
	switch a.(type) {
	case plan.RunSandbox, plan.StartContainer:
		return true
	}
	return false
}

func (w *worker) learnImage(a plan.EnsureImage, f fact) {
	img := plan.Image{Name: a.Image, Ref: f.ref, User: f.user, Warning: f.warning}
	if f.err != nil {
		before := w.imageOf(a)
		if before.Name != a.Image {
			before = plan.Image{}
		}
		img.Failure = plan.Failure{Count: before.Failure.Count + 1, Reason: "ErrImagePull", Message: f.err.Error()}
		img.Failure.Until = f.ended.Add(plan.RetryDelay(img.Failure.Count))
		if pull, ok := errors.AsType[*runtime.PullError](f.err); ok {
			img.Failure.Reason, img.Failure.Status = pull.Reason, pull.Status
			img.Failure.Final = pull.Reason == "InvalidImageName"
		}
		if later, ok := errors.AsType[*Later](f.err); ok {
			img.Failure.Until = later.Until
		}
		if img.Failure.Reason == "ErrImagePull" && img.Failure.Count > 1 {
			img.Failure.Reason = "ImagePullBackOff"
		}
	}
	switch {
	case a.Successor && f.of(w.in.Successor):
		w.in.History.Next = with(w.in.History.Next, a.Container, img)
	case !a.Successor && f.of(w.in.Desired):
		w.container(a.Container, func(h *plan.ContainerHistory) { h.Image = img })
	}
}

func (w *worker) imageOf(a plan.EnsureImage) plan.Image {
	if a.Successor {
		return w.in.History.Next[a.Container]
	}
	return w.in.History.Containers[a.Container].Image
}

func (w *worker) learnVolumes(f fact) {
	if !f.of(w.in.Desired) {
		return
	}
	if f.err != nil {
		w.in.History.Volumes = failed(w.in.History.Volumes, f, "")
		return
	}
	w.in.History.Volumes = plan.Failure{}
	w.in.History.VolumesReady, w.in.History.Written = true, f.written
	for name, n := range f.attempts {
		w.container(name, func(h *plan.ContainerHistory) { h.Attempt = max(h.Attempt, n) })
	}
}

func (w *worker) learnUpdate(f fact) {
	switch {
	case !f.of(w.in.Desired):
	case f.err != nil:
		w.in.History.Update = failed(w.in.History.Update, f, "")
	default:
		w.in.History.Update, w.in.History.Written = plan.Failure{}, f.written
	}
}

func (w *worker) learnCheck(a plan.CheckVolumes, f fact) {
	c := plan.Checked{UID: a.UID, Hash: a.Hash}
	if f.err != nil {
		if before := w.in.History.Checked; before.UID == a.UID && before.Hash == a.Hash {
			c.Failure = before.Failure
		}
		c.Failure = failed(c.Failure, f, "")
	}
	w.in.History.Checked = c
}

// volumesFailed: a directory without a journal would be nobody's.
func (w *worker) volumesFailed(err error) {
	n := w.in.History.Volumes.Count + 1
	w.in.History.Volumes = plan.Failure{Count: n, Message: err.Error(), Until: w.in.Now.Add(plan.RetryDelay(n))}
}

// learnSandbox takes a new sandbox. The runtime may have listed it before the
// call returned, and containers of it may have been started since.
func (w *worker) learnSandbox(f fact) {
	if f.err != nil {
		if f.of(w.in.Desired) {
			w.in.History.Sandbox = failed(w.in.History.Sandbox, f, "")
		}
		return
	}
	w.in.History.Sandbox = plan.Failure{}
	if findSandbox(w.in.Observed, f.sandbox.ID) != nil {
		return
	}
	made := runtime.Incarnation{Sandbox: *f.sandbox}
	w.in.Observed = append([]runtime.Incarnation{made}, w.in.Observed...)
	w.ownDirs()
}

func (w *worker) learnStart(a plan.StartContainer, f fact) {
	if f.container != nil {
		w.in.Observed = withContainer(w.in.Observed, *f.container)
	}
	if !f.of(w.in.Desired) {
		return
	}
	if f.container != nil {
		w.noteRunning(f.container, false, f.ended)
	}
	w.container(a.Container, func(h *plan.ContainerHistory) {
		h.Attempt = max(h.Attempt, a.Attempt)
		h.Image.Used = true
		if f.err == nil {
			h.Attempt = max(h.Attempt, a.Attempt+1)
			h.Start = plan.Failure{}
			h.RestartID = ""
			return
		}
		h.Start = failed(h.Start, f, startReason(f.err))
		// What failed to start may be a container without its image.
		if f.container == nil {
			h.Image = plan.Image{}
		}
	})
}

func failed(before plan.Failure, f fact, reason string) plan.Failure {
	n := before.Count + 1
	return plan.Failure{Count: n, Reason: reason, Message: f.err.Error(), Until: f.ended.Add(plan.RetryDelay(n))}
}

func (w *worker) container(name string, change func(*plan.ContainerHistory)) {
	h := w.in.History.Containers[name]
	change(&h)
	w.in.History.Containers = with(w.in.History.Containers, name, h)
}

// with returns a copy of m that has v at k: a map handed to a decision or an
// effect is never written again.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// runsToEnd tells whether a pod's exits must outlive the runtime's records: some
// container of it may end for good.
func runsToEnd(p *manifest.Pod) bool {
	if p == nil {
		return false
	}
	spec := &p.Spec.Spec
	ends := func(c v1.Container) bool { return manifest.RestartPolicyOf(spec, &c) != v1.RestartPolicyAlways }
	return slices.ContainsFunc(spec.InitContainers, ends) || slices.ContainsFunc(spec.Containers, ends)
}
