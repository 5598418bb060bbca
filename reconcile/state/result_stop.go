package state

import (
	"maps"
	"slices"

	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/reconcile/status"
	"podd/runtime"
)

// applyStop records the result of stopping a container. It removes the container from the state if
// the runtime reported that the container does not exist.
func (t *transition) applyStop(a plan.StopContainer, f result.Result) {
	stopped, _ := f.Value.(result.StoppedContainer)
	switch {
	case stopped.Container != nil:
		t.In.Observed = withContainer(t.In.Observed, *stopped.Container)
	case f.Err == nil:
		t.In.Observed = withoutContainer(t.In.Observed, a.ID)
	}
}

// applyRemoval records the successful stop or removal of a container, sandbox or directory.
func (t *transition) applyRemoval(f result.Result) {
	switch a := f.Action.(type) {
	case plan.RemoveContainer:
		t.In.Observed = withoutContainer(t.In.Observed, a.ID)
	case plan.StopSandbox:
		stopped, _ := f.Value.(result.StoppedSandbox)
		t.applySandboxStop(a.ID, stopped.Containers)
	case plan.RemoveSandbox:
		t.reserveSandboxAttempt(a.ID)
		t.In.Observed = withoutSandbox(t.In.Observed, a.ID)
	case plan.StopForeign:
		t.In.Observed = withoutSandbox(t.In.Observed, a.ID)
	case plan.ReleaseVolumes:
		dir := plan.Dir{UID: a.UID, Hash: t.dir(a.UID).Hash}
		t.setDir(dir)
		t.In.History.VolumesReady = false
		t.addWrite(dir.UID, dir.Hash)
	case plan.RemoveDir:
		t.dropDir(a)
	}
}

// reserveSandboxAttempt ensures that the attempt number of the removed sandbox with ID id is not
// used again. The number is part of the sandbox's name. If containerd was killed while it created a
// sandbox, it may store the sandbox after RemovePodSandbox has succeeded. A containerd that has
// stored two sandboxes with the same name does not start any more.
func (t *transition) reserveSandboxAttempt(id string) {
	removed, h := runtime.FindSandbox(t.In.Observed, id), &t.In.History
	if removed != nil && t.In.Desired != nil && removed.UID == t.In.Desired.UID {
		h.SandboxAttempt = max(h.SandboxAttempt, removed.Attempt+1)
	}
}

// applySandboxStop records that the sandbox with ID id was stopped, so that none of its
// containers runs. exited contains the containers whose exits the runtime has reported.
func (t *transition) applySandboxStop(id string, exited []runtime.Container) {
	for _, c := range exited {
		t.In.Observed = withContainer(t.In.Observed, c)
	}
	released := maps.Clone(t.In.History.ReleasedSandboxes)
	if released == nil {
		released = map[string]bool{}
	}
	released[id] = true
	t.In.History.ReleasedSandboxes = released
	t.In.Observed = slices.Clone(t.In.Observed)
	for i := range t.In.Observed {
		if inc := &t.In.Observed[i]; inc.ID == id {
			inc.Ready = false
			inc.Containers = t.allExited(inc)
			if t.In.Desired != nil && inc.UID == t.In.Desired.UID {
				t.In.History.VolumesReady = false
			}
		}
	}
}

// allExited returns the containers of inc, whose sandbox was stopped. Containers that ran get the
// state ExitUnknown if their exit codes are needed, until an observation reports the codes.
// Otherwise they get the state Exited with status.LostExitCode.
func (t *transition) allExited(inc *runtime.Incarnation) []runtime.Container {
	cs := slices.Clone(inc.Containers)
	for i := range cs {
		switch c := &cs[i]; {
		case c.State != runtime.Running && c.State != runtime.Unknown && c.State != runtime.ExitCodeUnknown:
		case t.needsExitCodes(inc):
			c.State, c.Message = runtime.ExitCodeUnknown, "its sandbox was stopped"
		default:
			c.State, c.FinishedAt = runtime.Exited, t.now
			c.ExitCode, c.Reason = status.LostExitCode, status.ContainerStatusUnknown
		}
	}
	return cs
}

// lacksExitInSandbox reports whether action a is the stop of a sandbox, and the exit code of a
// container in that sandbox is unknown.
func (t *transition) lacksExitInSandbox(a plan.Action) bool {
	stop, ok := a.(plan.StopSandbox)
	if !ok {
		return false
	}
	inc := runtime.FindSandbox(t.In.Observed, stop.ID)
	return inc != nil && lacksExitCode(inc)
}

// needsExitCodes reports whether the exit codes of inc are needed, because the next step of the pod
// may depend on them or they are reported to the cluster.
func (t *transition) needsExitCodes(inc *runtime.Incarnation) bool {
	if t.In.Desired != nil {
		return plan.IsCreatedFrom(inc, t.In.Desired)
	}
	return t.In.Previous != nil && t.In.Previous.Traits.HasStateAtSource && plan.IsCreatedFrom(inc, t.In.Previous)
}

// applyCleanup records the failure of a stop, removal or hook in the history. If the action
// succeeded, applyCleanup removes the earlier failure from the history.
func (t *transition) applyCleanup(f result.Result) {
	subject := f.Action.Subject()
	before, known := t.In.History.CleanupFailures[subject]
	if f.Err == nil {
		if known {
			t.In.History.CleanupFailures = maps.Clone(t.In.History.CleanupFailures)
			delete(t.In.History.CleanupFailures, subject)
		}
		return
	}
	t.In.History.CleanupFailures = withKey(t.In.History.CleanupFailures, subject, nextFailure(before, f, ""))
}
