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
	stop, _ := f.Value.(result.StoppedContainer)
	switch {
	case stop.Container != nil:
		t.PlanInput.Observed = withContainer(t.PlanInput.Observed, *stop.Container)
	case f.Err == nil:
		t.PlanInput.Observed = withoutContainer(t.PlanInput.Observed, a.ID)
	}
}

// applyKill records what KillProcesses has achieved, even if it has failed.
func (t *transition) applyKill(a plan.KillProcesses, f result.Result) {
	kill, _ := f.Value.(result.KilledProcesses)
	switch {
	case f.Err == nil:
		t.PlanInput.History.Kills = withKey(t.PlanInput.History.Kills, a.SandboxID, plan.ProcessesKilled)
	case kill.Found:
		t.PlanInput.History.Kills = withKey(t.PlanInput.History.Kills, a.SandboxID, plan.ContainersFound)
	}
}

// applyRemoval records the successful stop or removal of a container, sandbox or directory.
func (t *transition) applyRemoval(f result.Result) {
	switch a := f.Action.(type) {
	case plan.ReleaseVolumes:
		t.PlanInput.History.Kills = withKey(t.PlanInput.History.Kills, a.SandboxID, plan.VolumesReleased)
		t.PlanInput.History.VolumesReady = false
	case plan.RemoveContainer:
		t.PlanInput.Observed = withoutContainer(t.PlanInput.Observed, a.ID)
	case plan.StopSandbox:
		stop, _ := f.Value.(result.StoppedSandbox)
		t.applySandboxStop(a.ID, stop.Containers)
	case plan.RemoveSandbox:
		t.reserveSandboxAttempt(a.ID)
		t.PlanInput.Observed = withoutSandbox(t.PlanInput.Observed, a.ID)
	case plan.StopForeign:
		t.PlanInput.Observed = withoutSandbox(t.PlanInput.Observed, a.ID)
	case plan.ReleaseResources:
		dir := plan.PodDir{UID: a.UID, Hash: t.dir(a.UID).Hash}
		t.setDir(dir)
		t.PlanInput.History.VolumesReady = false
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
	sandbox, h := runtime.FindSandbox(t.PlanInput.Observed, id), &t.PlanInput.History
	if sandbox != nil && t.PlanInput.Desired != nil && sandbox.UID == t.PlanInput.Desired.UID {
		h.SandboxAttempt = max(h.SandboxAttempt, sandbox.Attempt+1)
	}
}

// applySandboxStop records that the sandbox with ID id was stopped, and that none of its containers
// runs. containers contains the containers whose exits the runtime has reported.
func (t *transition) applySandboxStop(id string, containers []runtime.Container) {
	for _, c := range containers {
		t.PlanInput.Observed = withContainer(t.PlanInput.Observed, c)
	}
	sandboxes := maps.Clone(t.PlanInput.History.ReleasedSandboxes)
	if sandboxes == nil {
		sandboxes = map[string]bool{}
	}
	sandboxes[id] = true
	t.PlanInput.History.ReleasedSandboxes = sandboxes
	t.PlanInput.Observed = slices.Clone(t.PlanInput.Observed)
	for i := range t.PlanInput.Observed {
		if inc := &t.PlanInput.Observed[i]; inc.ID == id {
			inc.Ready = false
			inc.Containers = t.containersAfterStop(inc)
			if t.PlanInput.Desired != nil && inc.UID == t.PlanInput.Desired.UID {
				t.PlanInput.History.VolumesReady = false
			}
		}
	}
}

// containersAfterStop returns the containers of inc, whose sandbox was stopped. If their exit codes
// are needed, containers that ran get the state ExitCodeUnknown until an observation reports the
// codes. Otherwise they get the state Exited with status.LostExitCode.
func (t *transition) containersAfterStop(inc *runtime.Incarnation) []runtime.Container {
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

// lacksExitInSandbox reports whether action a stops a sandbox that contains a container with an
// unknown exit code.
func (t *transition) lacksExitInSandbox(a plan.Action) bool {
	stop, ok := a.(plan.StopSandbox)
	if !ok {
		return false
	}
	inc := runtime.FindSandbox(t.PlanInput.Observed, stop.ID)
	return inc != nil && lacksExitCode(inc)
}

// needsExitCodes reports whether the exit codes of inc are needed. This is the case if the next
// step of the pod may depend on them, or if they are reported to the cluster.
func (t *transition) needsExitCodes(inc *runtime.Incarnation) bool {
	if t.PlanInput.Desired != nil {
		return plan.IsCreatedFrom(inc, t.PlanInput.Desired)
	}
	return t.PlanInput.Previous != nil && t.PlanInput.Previous.Traits.HasStateAtSource && plan.IsCreatedFrom(inc, t.PlanInput.Previous)
}

// applyCleanup records the failure of a stop, removal or hook in the history. If the action
// succeeded, applyCleanup removes the earlier failure from the history.
func (t *transition) applyCleanup(f result.Result) {
	subject := f.Action.Subject()
	oldFailure, hasFailed := t.PlanInput.History.CleanupFailures[subject]
	if f.Err == nil {
		if hasFailed {
			t.PlanInput.History.CleanupFailures = maps.Clone(t.PlanInput.History.CleanupFailures)
			delete(t.PlanInput.History.CleanupFailures, subject)
		}
		return
	}
	t.PlanInput.History.CleanupFailures = withKey(t.PlanInput.History.CleanupFailures, subject, nextFailure(oldFailure, f, ""))
}
