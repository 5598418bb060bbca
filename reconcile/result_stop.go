package reconcile

import (
	"maps"
	"slices"
	"time"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// applyStop updates a stopped container, or removes it if the runtime reports that it does
// not exist.
func (w *worker) applyStop(a plan.StopContainer, f effect.Result) {
	stopped, _ := f.Value.(effect.StoppedContainer)
	switch {
	case stopped.Container != nil:
		w.in.Observed = withContainer(w.in.Observed, *stopped.Container)
	case f.Err == nil:
		w.in.Observed = withoutContainer(w.in.Observed, a.ID)
	}
}

// applyRemoval removes what an action removed without an error.
func (w *worker) applyRemoval(f effect.Result) {
	switch a := f.Action.(type) {
	case plan.RemoveContainer:
		w.in.Observed = withoutContainer(w.in.Observed, a.ID)
	case plan.StopSandbox:
		stopped, _ := f.Value.(effect.StoppedSandbox)
		w.applySandboxStop(a.ID, stopped.Containers)
	case plan.RemoveSandbox:
		w.skipAttempt(a.ID)
		w.in.Observed = withoutSandbox(w.in.Observed, a.ID)
	case plan.StopForeign:
		w.in.Observed = withoutSandbox(w.in.Observed, a.ID)
	case plan.ReleaseVolumes:
		dir := plan.Dir{UID: a.UID, Hash: w.hashOf(a.UID)}
		w.setDir(dir)
		w.in.History.VolumesReady = false
		w.tryWriteJournal(dir.UID, dir.Hash)
	case plan.RemoveDir:
		w.dropDir(a)
	}
}

// skipAttempt does not let the pod use the attempt number of a removed sandbox again,
// because the number is a part of the sandbox's name. A containerd that was killed while
// it created a sandbox can still store it after RemovePodSandbox has succeeded, and does
// not start if it stores two sandboxes of one name.
func (w *worker) skipAttempt(id string) {
	removed, h := runtime.FindSandbox(w.in.Observed, id), &w.in.History
	if removed != nil && w.in.Desired != nil && removed.UID == w.in.Desired.UID {
		h.SandboxAttempt = max(h.SandboxAttempt, removed.Attempt+1)
	}
}

// applySandboxStop marks a sandbox and its containers as ended.
func (w *worker) applySandboxStop(id string, ended []runtime.Container) {
	for _, c := range ended {
		w.in.Observed = withContainer(w.in.Observed, c)
	}
	released := maps.Clone(w.in.History.Released)
	if released == nil {
		released = map[string]bool{}
	}
	released[id] = true
	w.in.History.Released = released
	w.in.Observed = slices.Clone(w.in.Observed)
	for i := range w.in.Observed {
		if inc := &w.in.Observed[i]; inc.ID == id {
			inc.Ready = false
			inc.Containers = w.allExited(inc)
			if w.in.Desired != nil && inc.UID == w.in.Desired.UID {
				w.in.History.VolumesReady = false
			}
		}
	}
}

// allExited returns the containers of a sandbox that was stopped, which ends them. If their
// exit codes are needed, those that were not reported are ExitUnknown until the next
// observation.
func (w *worker) allExited(inc *runtime.Incarnation) []runtime.Container {
	cs := slices.Clone(inc.Containers)
	for i := range cs {
		switch c := &cs[i]; {
		case c.State != runtime.Running && c.State != runtime.Unknown && c.State != runtime.ExitUnknown:
		case w.needsExitCodes(inc):
			c.State, c.Message = runtime.ExitUnknown, "its sandbox was stopped"
		default:
			c.State, c.FinishedAt = runtime.Exited, time.Now()
			c.ExitCode, c.Reason = status.LostCode, status.ContainerStatusUnknown
		}
	}
	return cs
}

// lacksExit reports whether an action stopped a sandbox with a container of unknown exit
// code.
func (w *worker) lacksExit(a plan.Action) bool {
	stop, ok := a.(plan.StopSandbox)
	if !ok {
		return false
	}
	inc := runtime.FindSandbox(w.in.Observed, stop.ID)
	return inc != nil && lacksExitCode(inc)
}

// needsExitCodes reports whether the exit codes of an incarnation decide what happens to
// its pod, or are reported to the cluster.
func (w *worker) needsExitCodes(inc *runtime.Incarnation) bool {
	if w.in.Desired != nil {
		return plan.Runs(w.in.Desired, inc)
	}
	return w.in.Previous != nil && ofCluster(w.in.Previous) && plan.Runs(w.in.Previous, inc)
}

// applyCleanup records the failure of a clean-up, or forgets it after a success.
func (w *worker) applyCleanup(f effect.Result) {
	subject := f.Action.Subject()
	before, known := w.in.History.Cleanup[subject]
	if f.Err == nil {
		if known {
			w.in.History.Cleanup = maps.Clone(w.in.History.Cleanup)
			delete(w.in.History.Cleanup, subject)
		}
		return
	}
	w.in.History.Cleanup = with(w.in.History.Cleanup, subject, failed(before, f, ""))
}
