package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// stopLostSandbox stops a sandbox that is no longer ready.
func (f *facts) stopLostSandbox(d *Decision) {
	d.Why = "the sandbox is not ready"
	if len(f.current.ID) > 0 {
		f.addCleanup(d, StopSandbox{ID: f.current.ID, Why: "sandbox lost"})
	} else {
		f.removeContainers(d, f.current)
	}
}

// lacksExitCode reports whether the sandbox is not ready and the next step depends on an unknown
// exit code.
func (f *facts) lacksExitCode() bool {
	return f.current != nil && !f.current.Ready && slices.ContainsFunc(f.containers, func(m containerFacts) bool { return f.needsExitCode(&m) })
}

func (f *facts) waitExits(d *Decision) {
	for i := range f.containers {
		if m := &f.containers[i]; f.needsExitCode(m) {
			d.Why, d.NeedsUser = m.spec.Name+": "+missingExitMessage(m.last), true
			d.Steps = append(d.Steps, Step{Container: m.spec.Name, Rule: RuleExitCodeUnknown, Why: missingExitMessage(m.last), NeedsUser: true})
		}
	}
}

// prepare prepares the volumes, creates the sandbox and pulls the images.
func (f *facts) prepare(d *Decision) {
	f.prepareVolumes(d)
	fail := f.in.History.SandboxFailure
	switch {
	case !f.in.History.VolumesReady && f.mustPrepareVolumesFirst():
	case f.in.Now.Before(fail.RetryAt):
		d.Why, d.NeedsUser, d.Reason, d.Failure = fail.Message, true, fail.Reason, fail
		d.wakeAt(fail.RetryAt)
	case f.in.MayHaveUnobserved: // do not create a second sandbox, because a sandbox with this name may exist without having been observed
	default:
		d.addAction(RunSandbox{Attempt: f.nextSandboxAttempt()})
	}
	f.prefetchImages(d)
}

// prepareVolumes prepares the volumes. It does nothing if they are ready, or if their retry is not
// due yet.
func (f *facts) prepareVolumes(d *Decision) {
	if f.in.History.VolumesReady {
		return
	}
	fail := f.in.History.VolumesFailure
	if f.in.Now.Before(fail.RetryAt) {
		d.Why, d.NeedsUser, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.RetryAt)
		return
	}
	d.addAction(PrepareVolumes{UID: f.in.Desired.UID})
	if fail.Message != "" { // keep showing the last failure during a retry
		d.Why, d.NeedsUser = fail.Message, true
	}
}

// mustPrepareVolumesFirst reports whether the sandbox is created only after the volumes are
// prepared, as in a kubelet. This is the case if there are volumes of a CSI driver, of a server or
// of a claim. Their preparation may take a long time, during which the sandbox would occupy an IP
// address. Other volumes are prepared while the sandbox is created.
func (f *facts) mustPrepareVolumesFirst() bool {
	return slices.ContainsFunc(f.in.Desired.Object.Spec.Volumes, func(v v1.Volume) bool {
		isDirectory := v.Ephemeral != nil && !f.in.Desired.Traits.HasEphemeralClaims // podd creates a directory for the volume, as for an emptyDir
		return !isDirectory && v.EmptyDir == nil && v.HostPath == nil && v.ConfigMap == nil && v.Secret == nil &&
			v.DownwardAPI == nil && v.Projected == nil && v.Image == nil
	})
}

// preparesVolumes reports whether d prepares volumes, or the preparation of volumes waits for a
// retry.
func (f *facts) preparesVolumes(d *Decision) bool {
	return f.in.Now.Before(f.in.History.VolumesFailure.RetryAt) || d.hasPrepareVolumes()
}

// hasPrepareVolumes reports whether d contains a PrepareVolumes action.
func (d *Decision) hasPrepareVolumes() bool {
	return slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(PrepareVolumes); return ok })
}

// nextSandboxAttempt returns the attempt number for the next sandbox. It is at least
// History.SandboxAttempt, and higher than the attempt numbers of all observed sandboxes with the
// pod's UID.
func (f *facts) nextSandboxAttempt() uint32 {
	n := f.in.History.SandboxAttempt
	for _, inc := range f.in.Observed {
		if inc.UID == f.in.Desired.UID && inc.ID != "" {
			n = max(n, inc.Attempt+1)
		}
	}
	return n
}

// isInitPending reports whether an init container has not completed or a sidecar has not started.
func (f *facts) isInitPending() bool {
	for i := range f.containers {
		if m := &f.containers[i]; m.kind != KindRegular && !f.allowsFollowing(m) {
			return true
		}
	}
	return false
}
