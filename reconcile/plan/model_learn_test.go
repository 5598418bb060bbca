package plan

import (
	"errors"
	"maps"
	"slices"
	"time"

	"podd/manifest"
)

// apply applies the result of an action to the history, as a worker does. The action's changes to
// the runtime are observed immediately, unless the result was lost.
func (w *world) apply(a Action, p, alloc *manifest.Pod, err error) {
	if v := a.Verb(); err == nil && v != "kill" && v != "empty" { // the runtime does not respond, and reports the exits later
		w.in.Observed = cloneAll(w.machine)
	}
	switch a := a.(type) {
	case EnsureImage:
		if p == w.in.Desired && !a.ForSuccessor || p == w.in.Successor && a.ForSuccessor {
			w.applyImage(a, err)
		}
		return
	case PrepareVolumes:
		if p != w.in.Desired {
			return
		}
		if err != nil {
			w.in.History.VolumesFailure = w.failure(w.in.History.VolumesFailure, err)
			return
		}
		w.in.History.VolumesFailure, w.in.History.VolumesReady = Failure{}, true
		w.in.History.WrittenFilesDigest = w.written[p.UID]
		return
	case UpdateVolumes:
		if p != w.in.Desired {
			return
		}
		if err != nil {
			w.in.History.UpdateFailure = w.failure(w.in.History.UpdateFailure, err)
			return
		}
		w.in.History.UpdateFailure, w.in.History.WrittenFilesDigest = Failure{}, w.written[p.UID]
		return
	case CheckVolumes:
		c := VolumeCheck{UID: a.UID, Hash: a.Hash}
		if err != nil {
			c.Failure = w.failure(w.in.History.VolumeCheck.Failure, err)
		}
		w.in.History.VolumeCheck = c
		return
	case RunSandbox:
		if err != nil {
			w.in.History.SandboxFailure, w.in.MayHaveUnobserved = w.failure(w.in.History.SandboxFailure, err), true
			return
		}
		w.in.History.SandboxFailure = Failure{}
		return
	case StartContainer:
		w.in.MayHaveUnobserved = w.in.MayHaveUnobserved || err != nil
		if p == w.in.Desired {
			w.applyStart(a, err)
		}
		return
	case ReadMessage:
		w.in.History.TerminationMessages = with(w.in.History.TerminationMessages, a.ID, "")
		return
	case RunPostStart, RunPreStop:
		w.applyHook(a, p, err)
		return
	case ResizeContainer:
		w.container(a.Container, func(h *ContainerHistory) {
			h.ResizeFailure = w.applySize(h.ResizeFailure, a.ID, alloc.ContainerHashes[a.Container].Resources, err)
		})
		return
	case ResizePod:
		w.in.History.ResizePodFailure = w.applySize(w.in.History.ResizePodFailure, a.SandboxID, alloc.PodSize(), err)
		return
	case StopSandbox:
		if err == nil {
			w.in.History.ReleasedSandboxes = with(w.in.History.ReleasedSandboxes, a.ID, true)
			w.in.History.VolumesReady = false
		}
	case KillProcesses:
		if err == nil {
			w.in.History.Kills = with(w.in.History.Kills, a.SandboxID, ProcessesKilled)
		}
	case ReleaseVolumes:
		if err == nil {
			w.in.History.Kills = with(w.in.History.Kills, a.SandboxID, VolumesReleased)
			w.in.History.VolumesReady = false
		}
	case ReleaseResources:
		if err == nil {
			w.releaseDir(a)
		}
	case RemoveDir:
		if err == nil {
			w.in.PodDirs = slices.DeleteFunc(slices.Clone(w.in.PodDirs), func(d PodDir) bool { return d.UID == a.UID })
			w.in.History.VolumesReady = false
			delete(w.past, a.UID)
			delete(w.added.pending, a.UID)
		}
	}
	w.applyCleanup(a, err)
}

func (w *world) applySize(before Failure, id, size string, err error) Failure {
	if err != nil {
		return w.failure(before, err)
	}
	w.resized = with(w.resized, id, Size{Value: size})
	w.in.History.Sizes = w.resized
	return Failure{}
}

func (w *world) releaseDir(a ReleaseResources) {
	for _, d := range w.in.PodDirs {
		if d.UID == a.UID {
			d.MayHaveVolumes = false
			w.setDir(d)
		}
	}
	w.in.History.VolumesReady = false
}

func (w *world) applyCleanup(a Action, err error) {
	if err != nil && !errors.Is(err, errLost) {
		w.in.History.CleanupFailures = with(w.in.History.CleanupFailures, a.Subject(), w.failure(w.in.History.CleanupFailures[a.Subject()], err))
		return
	}
	w.in.History.CleanupFailures = maps.Clone(w.in.History.CleanupFailures)
	delete(w.in.History.CleanupFailures, a.Subject())
}

func (w *world) applyImage(a EnsureImage, err error) {
	img := Image{Name: a.Image, Ref: "sha256:" + a.Image}
	before := w.in.History.Containers[a.Container].Image.Failure
	if a.ForSuccessor {
		before = w.in.History.SuccessorImages[a.Container].Failure
	}
	if err != nil {
		img.Ref = ""
		img.Failure = w.failure(before, err)
		img.Failure.Reason = "ErrImagePull"
		img.Failure.RetryAt = w.in.Now.Add(backoffDelay(img.Failure.Count, 0))
	}
	if a.ForSuccessor {
		w.in.History.SuccessorImages = with(w.in.History.SuccessorImages, a.Container, img)
		return
	}
	w.container(a.Container, func(h *ContainerHistory) { h.Image = img })
}

func (w *world) applyStart(a StartContainer, err error) {
	w.container(a.Container, func(h *ContainerHistory) {
		h.Attempt = max(h.Attempt, a.Attempt)
		h.Image.Used = true
		if err == nil || errors.Is(err, errUnseen) {
			h.Attempt = max(h.Attempt, a.Attempt+1)
			h.StartFailure = Failure{}
			if err == nil {
				h.RestartRequestedID = ""
			}
			return
		}
		h.StartFailure = w.failure(h.StartFailure, err)
		h.StartFailure.Reason = "RunContainerError"
	})
}

func (w *world) failure(before Failure, err error) Failure {
	n := before.Count + 1
	return Failure{Count: n, Message: err.Error(), RetryAt: w.in.Now.Add(RetryDelay(n))}
}

// settle makes decisions and completes their actions, until no action is in progress and no wait
// ends within patience. It calls decided for each decision and did for each action. It returns the
// last decision and true, or false if 1000 rounds were not enough.
func (w *world) settle(patience time.Duration, decided func(Decision), did func(Action)) (Decision, bool) {
	until := w.in.Now.Add(patience)
	for range 1000 {
		d := w.decide()
		decided(d)
		if flights := w.flights(); len(flights) > 0 {
			if !w.canceled[flights[0]] {
				did(w.in.InFlight[flights[0]])
			}
			w.complete(flights[0], w.failureOf(flights[0]))
			continue
		}
		if w.in.MayHaveUnobserved {
			w.observe()
			continue
		}
		next := d.WakeAt
		if w.awaitsProbes() {
			next = d.NextWake()
		}
		if next.IsZero() || next.After(until) {
			if len(w.used) > 0 {
				w.use(w.used[1:])
				continue
			}
			return d, true
		}
		w.in.Now = next
	}
	return Decision{}, false
}
