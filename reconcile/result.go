package reconcile

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/runtime"
)

// applyResult updates the observed state, the directories and the history from a result. It
// reports whether a new observation is required. The results of probes are applied by
// applyProbe.
func (w *worker) applyResult(f effect.Result) (ask bool) {
	if createsInRuntime(f.Action) && (f.Err != nil || startUnobserved(f)) {
		// The container or sandbox may exist despite the error.
		w.in.Unobserved, ask = true, true
	}
	if f.Err != nil && errors.Is(f.Err, context.Canceled) {
		return ask
	}
	switch a := f.Action.(type) {
	case plan.EnsureImage:
		w.applyImage(a, f)
		return false
	case plan.PrepareVolumes:
		w.applyVolumes(f)
		return false
	case plan.UpdateVolumes:
		w.applyVolumeUpdate(f)
		return false
	case plan.CheckVolumes:
		w.applyVolumeCheck(a, f)
		return false
	case plan.RunSandbox:
		w.applySandbox(a, f)
		sandbox, _ := f.Value.(effect.NewSandbox)
		return ask || len(sandbox.Others) > 0
	case plan.StartContainer:
		w.applyStart(a, f)
		return ask
	case plan.ResizeContainer:
		w.applyResize(a, f)
		return f.Err != nil
	case plan.ResizePod:
		w.applyPodResize(a, f)
		return false
	case plan.PostStart, plan.PreStop:
		return w.applyHook(f)
	case plan.StopContainer:
		w.applyStop(a, f)
	}
	if f.Err == nil {
		w.applyRemoval(f)
	}
	w.applyCleanup(f)
	return f.Err != nil || w.lacksExit(f.Action)
}

// createsInRuntime reports whether an action creates a sandbox or a container.
func createsInRuntime(a plan.Action) bool {
	switch a.(type) {
	case plan.RunSandbox, plan.StartContainer:
		return true
	}
	return false
}

// startUnobserved reports whether f is a successful start of a container without a response
// to the query for its status.
func startUnobserved(f effect.Result) bool {
	started, ok := f.Value.(effect.StartedContainer)
	return ok && f.Err == nil && started.Container == nil
}

func (w *worker) applyImage(a plan.EnsureImage, f effect.Result) {
	ensured, _ := f.Value.(effect.EnsuredImage)
	img := plan.Image{Name: a.Image, Ref: ensured.Ref, User: ensured.User, Warning: f.Warning}
	if f.Err != nil {
		before := w.imageOf(a)
		if before.Name != a.Image {
			before = plan.Image{}
		}
		img.Failure = plan.Failure{Count: before.Failure.Count + 1, Reason: "ErrImagePull", Message: f.Err.Error()}
		img.Failure.Until = f.Ended.Add(plan.RetryDelay(img.Failure.Count))
		if pull, ok := errors.AsType[*runtime.PullError](f.Err); ok {
			img.Failure.Reason, img.Failure.Status = pull.Reason, pull.Status
			img.Failure.Final = pull.Reason == "InvalidImageName"
		}
		if later, ok := errors.AsType[*effect.RetryLaterError](f.Err); ok {
			img.Failure.Until = later.Until
		}
		if img.Failure.Reason == "ErrImagePull" && img.Failure.Count > 1 {
			img.Failure.Reason = "ImagePullBackOff"
		}
	}
	switch {
	case a.Successor && f.IsFor(w.in.Successor):
		w.in.History.Next = with(w.in.History.Next, a.Container, img)
	case !a.Successor && f.IsFor(w.in.Desired):
		w.container(a.Container, func(h *plan.ContainerHistory) { h.Image = img })
	}
}

func (w *worker) imageOf(a plan.EnsureImage) plan.Image {
	if a.Successor {
		return w.in.History.Next[a.Container]
	}
	return w.in.History.Containers[a.Container].Image
}

func (w *worker) applyVolumes(f effect.Result) {
	if !f.IsFor(w.in.Desired) {
		return
	}
	if f.Err != nil {
		w.in.History.Volumes = failed(w.in.History.Volumes, f, "")
		return
	}
	w.in.History.Volumes = plan.Failure{}
	volumes, _ := f.Value.(effect.WrittenVolumes)
	w.in.History.VolumesReady, w.in.History.Written = true, volumes.Files
	for name, n := range volumes.Attempts {
		w.container(name, func(h *plan.ContainerHistory) {
			if n > h.Attempt {
				h.Attempt, h.Restarts = n, h.Restarts+n-h.Attempt
			}
		})
	}
}

func (w *worker) applyVolumeUpdate(f effect.Result) {
	switch {
	case !f.IsFor(w.in.Desired):
	case f.Err != nil:
		w.in.History.Update = failed(w.in.History.Update, f, "")
	default:
		volumes, _ := f.Value.(effect.WrittenVolumes)
		w.in.History.Update, w.in.History.Written = plan.Failure{}, volumes.Files
	}
}

func (w *worker) applyVolumeCheck(a plan.CheckVolumes, f effect.Result) {
	c := plan.VolumeCheck{UID: a.UID, Hash: a.Hash}
	if f.Err != nil {
		if before := w.in.History.VolumeCheck; before.UID == a.UID && before.Hash == a.Hash {
			c.Failure = before.Failure
		}
		c.Failure = failed(c.Failure, f, "")
	}
	w.in.History.VolumeCheck = c
}

// volumesFailed records that no volume was prepared, because the journal of the directory
// could not be written: without it the directory would be an orphan.
func (w *worker) volumesFailed(err error) {
	n := w.in.History.Volumes.Count + 1
	w.in.History.Volumes = plan.Failure{Count: n, Message: err.Error(), Until: w.in.Now.Add(plan.RetryDelay(n))}
}

// applySandbox adds a new sandbox. The runtime may have listed it before the call returned,
// and containers in it may have been started since.
func (w *worker) applySandbox(a plan.RunSandbox, f effect.Result) {
	if f.Err != nil {
		if f.IsFor(w.in.Desired) {
			w.applySandboxFailure(a, f)
		}
		return
	}
	made, _ := f.Value.(effect.NewSandbox)
	before := w.in.History.Sandbox
	w.in.History.Sandbox = plan.Failure{}
	if len(made.Others) > 0 {
		w.in.History.Sandbox = contended(before, f, made.Sandbox.ID)
	}
	for _, o := range made.Others {
		if runtime.FindSandbox(w.in.Observed, o.ID) == nil {
			w.in.Observed = append(slices.Clone(w.in.Observed), runtime.Incarnation{Sandbox: o})
		}
	}
	if runtime.FindSandbox(w.in.Observed, made.Sandbox.ID) != nil {
		return
	}
	w.in.Observed = append([]runtime.Incarnation{{Sandbox: *made.Sandbox}}, w.in.Observed...)
	w.addDirs()
}

// applySandboxFailure records that a sandbox was not created.
func (w *worker) applySandboxFailure(a plan.RunSandbox, f effect.Result) {
	h := &w.in.History
	if errors.Is(f.Err, runtime.ErrNameReserved) {
		h.SandboxAttempt = a.Attempt + 1
		h.Sandbox = skipped(h.Sandbox, f, "")
		return
	}
	h.Sandbox = failed(h.Sandbox, f, "")
}

// contended returns the failure of the sandbox id, which was created at the same time as one of
// another instance. The wait differs each time, and is up to several times as long as the
// creation took, so that two instances that both gave up do not try again at the same time.
func contended(before plan.Failure, f effect.Result, id string) plan.Failure {
	n := before.Count + 1
	sum := fnv.New64a()
	sum.Write([]byte(id))
	longest := plan.RetryDelay(n) + 4*f.Ended.Sub(f.Began)
	return plan.Failure{
		Count: n, Message: "another podd or kubelet made this pod at the same time",
		Until: f.Ended.Add(time.Duration(sum.Sum64() % uint64(longest))),
	}
}

func (w *worker) applyStart(a plan.StartContainer, f effect.Result) {
	started, _ := f.Value.(effect.StartedContainer)
	if started.Container != nil {
		w.in.Observed = withContainer(w.in.Observed, *started.Container)
	}
	if !f.IsFor(w.in.Desired) {
		return
	}
	if started.Container != nil {
		w.recordRunning(started.Container, false, f.Ended)
	}
	w.container(a.Container, func(h *plan.ContainerHistory) {
		h.Attempt = max(h.Attempt, a.Attempt)
		if errors.Is(f.Err, runtime.ErrNameReserved) && !w.isEphemeral(a.Container) {
			// Nothing was started.
			h.Attempt, h.Restarts = a.Attempt+1, a.Restarts
			h.Start = skipped(h.Start, f, effect.StartReason(f.Err))
			return
		}
		h.Image.Used = true
		if f.Err == nil {
			h.Attempt = max(h.Attempt, a.Attempt+1)
			h.Restarts = max(h.Restarts, a.Restarts+1)
			h.Start = plan.Failure{}
			if started.Container != nil { // the old container is the newest observed one otherwise
				h.RestartID = ""
			}
			return
		}
		h.Start = failed(h.Start, f, effect.StartReason(f.Err))
		// The start may have failed because the image is missing.
		if started.Container == nil {
			h.Image = plan.Image{}
		}
	})
}

// isEphemeral reports whether the version in force has an ephemeral container of that name.
// Its attempt number stays the same at every try, because it must not be created twice.
func (w *worker) isEphemeral(container string) bool {
	_, kind, _ := plan.FindContainer(w.in.Desired.Spec, container)
	return kind == plan.Ephemeral
}

// failed returns the failure after before, with the next retry delay.
func failed(before plan.Failure, f effect.Result, reason string) plan.Failure {
	n := before.Count + 1
	return plan.Failure{Count: n, Reason: reason, Message: f.Err.Error(), Until: f.Ended.Add(plan.RetryDelay(n))}
}

// skipped returns the failure of an attempt with a reserved name. If this is the first
// failure, the next attempt number is tried at once, because it is free unless the runtime
// reports something else as a reserved name.
func skipped(before plan.Failure, f effect.Result, reason string) plan.Failure {
	fail := failed(before, f, reason)
	if fail.Count == 1 {
		fail.Until = time.Time{}
	}
	return fail
}

// container changes the history of a container.
func (w *worker) container(name string, change func(*plan.ContainerHistory)) {
	h := w.in.History.Containers[name]
	change(&h)
	w.in.History.Containers = with(w.in.History.Containers, name, h)
}

// with returns a copy of m in which k has the value v. A map that a decision or an effect
// reads is never modified.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// runsToEnd reports whether a container of p may terminate for good, so that its exit must
// be stored in the journal.
func runsToEnd(p *manifest.Pod) bool {
	if p == nil {
		return false
	}
	spec := &p.Spec.Spec
	ends := func(c v1.Container) bool { return manifest.RestartPolicyOf(spec, &c) != v1.RestartPolicyAlways }
	return slices.ContainsFunc(spec.InitContainers, ends) || slices.ContainsFunc(spec.Containers, ends)
}
