package state

import (
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// ApplyResult applies the result of an action. The order in which results arrive may differ from
// the order in which their effects ended.
func (s *State) ApplyResult(f result.Result, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	switch a := f.Action.(type) {
	case plan.RunProbe:
		t.outputs.NeedsReport = !f.Canceled && t.applyProbe(a, f)
		return t.end()
	case plan.ReadMessage:
		message, _ := f.Value.(result.TerminationMessage)
		t.PlanInput.History.TerminationMessages = withKey(t.PlanInput.History.TerminationMessages, a.ID, message.Text)
		t.outputs.NeedsReport = true
		return t.end()
	}
	if plan.IsObservable(f.Action) && f.Ended.After(t.Barrier) {
		t.Barrier = f.Ended
	}
	f = t.redactResult(f)
	t.addEvents(t.resultEvents(f)...)
	observe := t.applyResult(f)
	if f.Err != nil && f.Refs != t.Refs && f.Refs != t.SuccessorRefs {
		t.retryObjectFailures() // the objects have changed since the action began, so it may succeed now
	}
	if observe {
		t.requestObservation(ObserveAtOnce)
	}
	t.outputs.NeedsReport = true
	return t.end()
}

// applyResult updates the observed state, the directories and the history from the result of an
// action other than RunProbe and ReadMessage. observe reports whether a new observation is
// required.
func (t *transition) applyResult(f result.Result) (observe bool) {
	if createsInRuntime(f.Action) && (f.Err != nil || isStartUnobserved(f)) {
		// The container or sandbox may exist although it was not observed.
		t.PlanInput.MayHaveUnobserved, observe = true, true
	}
	if _, ok := errors.AsType[*result.AbandonedCallError](f.Err); ok {
		t.setKeepUntil(f.Version.UID, f.Ended.Add(LateCallTimeout))
	}
	if f.Canceled {
		return observe
	}
	switch a := f.Action.(type) {
	case plan.EnsureImage:
		t.applyImage(a, f)
		return false
	case plan.PrepareVolumes:
		t.applyVolumes(f)
		return false
	case plan.UpdateVolumes:
		t.applyVolumeUpdate(f)
		return false
	case plan.CheckVolumes:
		t.applyVolumeCheck(a, f)
		return false
	case plan.RunSandbox:
		t.applySandbox(a, f)
		sandbox, _ := f.Value.(result.CreatedSandbox)
		return observe || len(sandbox.Others) > 0
	case plan.StartContainer:
		t.applyStart(a, f)
		return observe
	case plan.ResizeContainer:
		t.applyResize(a, f)
		return f.Err != nil
	case plan.ResizePod:
		t.applyPodResize(a, f)
		return false
	case plan.RunPostStart, plan.RunPreStop:
		return t.applyHook(f)
	case plan.StopContainer:
		t.applyStop(a, f)
	case plan.KillProcesses:
		t.applyKill(a, f)
	}
	if f.Err == nil {
		t.applyRemoval(f)
	}
	t.applyCleanup(f)
	return f.Err != nil || t.lacksExitInSandbox(f.Action)
}

// createsInRuntime reports whether an action creates a sandbox or a container.
func createsInRuntime(a plan.Action) bool {
	switch a.(type) {
	case plan.RunSandbox, plan.StartContainer:
		return true
	}
	return false
}

// isStartUnobserved reports whether f is the result of a successful start of a container whose
// status could not be queried.
func isStartUnobserved(f result.Result) bool {
	start, ok := f.Value.(result.StartedContainer)
	return ok && f.Err == nil && start.Container == nil
}

// applyImage records the result of ensuring that an image is present.
func (t *transition) applyImage(a plan.EnsureImage, f result.Result) {
	image, _ := f.Value.(result.EnsuredImage)
	img := plan.Image{Name: a.Image, Ref: image.Ref, User: image.User, Warning: f.Warning}
	if f.Err != nil {
		oldImage := t.imageOf(a)
		if oldImage.Name != a.Image {
			oldImage = plan.Image{}
		}
		img.Failure = plan.Failure{Count: oldImage.Failure.Count + 1, Reason: "ErrImagePull", Message: f.Err.Error()}
		img.Failure.RetryAt = f.Ended.Add(plan.RetryDelay(img.Failure.Count))
		if pull, ok := errors.AsType[*runtime.PullError](f.Err); ok {
			img.Failure.Reason, img.Failure.HTTPStatus = pull.Reason, pull.Status
			img.Failure.IsFinal = pull.Reason == "InvalidImageName"
		}
		if retryLater, ok := errors.AsType[*result.RetryLaterError](f.Err); ok {
			img.Failure.RetryAt = retryLater.Until
		}
		if img.Failure.Reason == "ErrImagePull" && img.Failure.Count > 1 {
			img.Failure.Reason = "ImagePullBackOff"
		}
	}
	switch {
	case a.ForSuccessor && f.IsFor(t.PlanInput.Successor):
		t.PlanInput.History.SuccessorImages = withKey(t.PlanInput.History.SuccessorImages, a.Container, img)
	case !a.ForSuccessor && f.IsFor(t.PlanInput.Desired):
		t.changeContainer(a.Container, func(h *plan.ContainerHistory) { h.Image = img })
	}
}

// imageOf returns the recorded result for the image of action a.
func (t *transition) imageOf(a plan.EnsureImage) plan.Image {
	if a.ForSuccessor {
		return t.PlanInput.History.SuccessorImages[a.Container]
	}
	return t.PlanInput.History.Containers[a.Container].Image
}

// applyVolumes records the result of preparing the volumes.
func (t *transition) applyVolumes(f result.Result) {
	if !f.IsFor(t.PlanInput.Desired) {
		return
	}
	if f.Err != nil {
		t.PlanInput.History.VolumesFailure = nextFailure(t.PlanInput.History.VolumesFailure, f, "")
		return
	}
	t.PlanInput.History.VolumesFailure = plan.Failure{}
	volumes, _ := f.Value.(result.WrittenVolumes)
	t.PlanInput.History.VolumesReady, t.PlanInput.History.WrittenFilesDigest = true, volumes.FilesDigest
	for name, n := range volumes.Attempts {
		t.changeContainer(name, func(h *plan.ContainerHistory) {
			if n > h.Attempt {
				h.Attempt, h.Restarts = n, h.Restarts+n-h.Attempt
			}
		})
	}
}

// applyVolumeUpdate records the result of updating the files in the volumes.
func (t *transition) applyVolumeUpdate(f result.Result) {
	switch {
	case !f.IsFor(t.PlanInput.Desired):
	case f.Err != nil:
		t.PlanInput.History.UpdateFailure = nextFailure(t.PlanInput.History.UpdateFailure, f, "")
	default:
		volumes, _ := f.Value.(result.WrittenVolumes)
		t.PlanInput.History.UpdateFailure, t.PlanInput.History.WrittenFilesDigest = plan.Failure{}, volumes.FilesDigest
	}
}

// applyVolumeCheck records the result of checking the volumes of a newer version.
func (t *transition) applyVolumeCheck(a plan.CheckVolumes, f result.Result) {
	c := plan.VolumeCheck{UID: a.UID, Hash: a.Hash}
	if f.Err != nil {
		if oldCheck := t.PlanInput.History.VolumeCheck; oldCheck.UID == a.UID && oldCheck.Hash == a.Hash {
			c.Failure = oldCheck.Failure
		}
		c.Failure = nextFailure(c.Failure, f, "")
	}
	t.PlanInput.History.VolumeCheck = c
}

// applySandbox records the result of creating a sandbox. A sandbox that was already observed is not
// replaced, because containers may have been started in it since its creation.
func (t *transition) applySandbox(a plan.RunSandbox, f result.Result) {
	if f.Err != nil {
		if f.IsFor(t.PlanInput.Desired) {
			t.applySandboxFailure(a, f)
		}
		return
	}
	sandbox, _ := f.Value.(result.CreatedSandbox)
	oldFailure := t.PlanInput.History.SandboxFailure
	t.PlanInput.History.SandboxFailure = plan.Failure{}
	if len(sandbox.Others) > 0 {
		t.PlanInput.History.SandboxFailure = contentionFailure(oldFailure, f, sandbox.Sandbox.ID)
	}
	for _, o := range sandbox.Others {
		if runtime.FindSandbox(t.PlanInput.Observed, o.ID) == nil {
			t.PlanInput.Observed = append(slices.Clone(t.PlanInput.Observed), runtime.Incarnation{Sandbox: o})
		}
	}
	if runtime.FindSandbox(t.PlanInput.Observed, sandbox.Sandbox.ID) != nil {
		return
	}
	t.PlanInput.Observed = append([]runtime.Incarnation{{Sandbox: *sandbox.Sandbox}}, t.PlanInput.Observed...)
	t.addDirs()
}

// applySandboxFailure records that creating a sandbox failed.
func (t *transition) applySandboxFailure(a plan.RunSandbox, f result.Result) {
	h := &t.PlanInput.History
	if errors.Is(f.Err, runtime.ErrNameReserved) {
		h.SandboxAttempt = a.Attempt + 1
		h.SandboxFailure = reservedNameFailure(h.SandboxFailure, f, "")
		return
	}
	h.SandboxFailure = nextFailure(h.SandboxFailure, f, "")
}

// contentionFailure returns the failure for the sandbox with ID id, which was created at the same
// time as a sandbox of another agent. Both agents may stop their sandboxes. The delay before the
// retry depends on id, so that the agents do not try again at the same time. The delay is less than
// plan.RetryDelay plus four times the duration of the creation.
func contentionFailure(oldFailure plan.Failure, f result.Result, id string) plan.Failure {
	n := oldFailure.Count + 1
	hash := fnv.New64a()
	hash.Write([]byte(id))
	maxDelay := plan.RetryDelay(n) + 4*f.Ended.Sub(f.Began)
	return plan.Failure{
		Count: n, Message: "another podd or a kubelet has created a sandbox for this pod at the same time",
		RetryAt: f.Ended.Add(time.Duration(hash.Sum64() % uint64(maxDelay))),
	}
}

// applyStart records the result of creating and starting a container.
func (t *transition) applyStart(a plan.StartContainer, f result.Result) {
	start, _ := f.Value.(result.StartedContainer)
	if start.Container != nil {
		t.PlanInput.Observed = withContainer(t.PlanInput.Observed, *start.Container)
	}
	if !f.IsFor(t.PlanInput.Desired) {
		return
	}
	if start.Container != nil {
		t.recordRunning(start.Container, false, f.Ended)
	}
	t.changeContainer(a.Container, func(h *plan.ContainerHistory) {
		h.Attempt = max(h.Attempt, a.Attempt)
		if errors.Is(f.Err, runtime.ErrNameReserved) && !t.isEphemeral(a.Container) {
			// The start does not count as a restart, because no container was created.
			h.Attempt, h.Restarts = a.Attempt+1, a.Restarts
			h.StartFailure = reservedNameFailure(h.StartFailure, f, result.StartReason(f.Err))
			return
		}
		h.Image.Used = true
		if f.Err == nil {
			h.Attempt = max(h.Attempt, a.Attempt+1)
			h.Restarts = max(h.Restarts, a.Restarts+1)
			h.StartFailure = plan.Failure{}
			if start.Container != nil { // if the new container was not observed yet, keep the ID, because it must match the newest observed container
				h.RestartRequestedID = ""
			}
			return
		}
		h.StartFailure = nextFailure(h.StartFailure, f, result.StartReason(f.Err))
		// Check the image again, because the start may have failed because the image is missing.
		if start.Container == nil {
			h.Image = plan.Image{}
		}
	})
}

// isEphemeral reports whether the version in force has an ephemeral container with this name. All
// attempts to start such a container use the same attempt number, because it must not be created
// twice.
func (t *transition) isEphemeral(container string) bool {
	_, kind, _ := plan.FindContainer(t.PlanInput.Desired.Object, container)
	return kind == plan.KindEphemeral
}

// nextFailure returns the failure for the error in f. oldFailure is the previous failure of the
// operation, and reason is a waiting reason of a container or "".
func nextFailure(oldFailure plan.Failure, f result.Result, reason string) plan.Failure {
	n := oldFailure.Count + 1
	return plan.Failure{Count: n, Reason: reason, Message: f.Err.Error(), RetryAt: f.Ended.Add(plan.RetryDelay(n))}
}

// reservedNameFailure returns the failure of an attempt with a name that is reserved in the runtime.
// After the first failure, the next attempt is made at once, because it has another number and thus
// another name, which should be free.
func reservedNameFailure(oldFailure plan.Failure, f result.Result, reason string) plan.Failure {
	fail := nextFailure(oldFailure, f, reason)
	if fail.Count == 1 {
		fail.RetryAt = time.Time{}
	}
	return fail
}
