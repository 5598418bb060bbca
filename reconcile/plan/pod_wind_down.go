package plan

import "cmp"

// windDown stops the sidecars and the sandbox of a finished pod, and releases its volumes and its cgroup.
// Then the pod enters PhaseCleanedUp. Its records and logs are kept.
func (f *facts) windDown(d *Decision) {
	if !f.in.History.Finished.AppliesTo(f.desired) {
		fin := f.endOfPod()
		d.RecordFirst = f.mustRecordFirst(fin)
		// An end that must be recorded first waits for the termination messages, because
		// they are published with it.
		if d.RecordFirst && f.readMessages(d) {
			return
		}
		d.Finished = fin
	}
	why := "the pod has finished"
	if fin := cmp.Or(d.Finished, f.in.History.Finished); fin != nil && fin.Reason != "" {
		d.Why, d.Reason, d.NeedsUser = fin.explanation(), fin.Reason, fin.Reason != ReasonTerminated
		if !d.NeedsUser {
			why = "the node is shutting down"
		}
	}
	if f.cancelStarts(d) {
		return
	}
	if f.current != nil && (IsLive(f.current) || f.mayHaveVolumes() && !f.in.History.ReleasedSandboxes[f.current.ID]) {
		fin := cmp.Or(d.Finished, f.in.History.Finished)
		t := stopBudget{since: fin.At, grace: effectiveGrace(f.current, fin), why: why}
		f.stopContainers(d, f.current, t)
		if fin.isByNode() {
			f.checkOverdue(d, f.current, t)
		}
		return
	}
	if f.in.DirsInUse[f.in.Desired.UID] {
		return
	}
	if f.mayHaveVolumes() {
		f.addCleanup(d, ReleaseResources{UID: f.in.Desired.UID})
		return
	}
	d.Phase = PhaseCleanedUp
	if fin := f.in.History.Finished; f.mayResume() && fin.WaitsForRestart() {
		f.restartEvicted(d, fin)
	} else {
		d.Resume = f.mayResume()
	}
}

// explanation returns why the pod has ended, for users: the shortage of a pod that was evicted under
// node pressure, and otherwise the message.
func (f *PodEnd) explanation() string {
	if f.Shortage != (Shortage{}) {
		return "evicted because of " + f.Shortage.String()
	}
	return f.Message
}

// mustRecordFirst reports whether the end fin must be on disk before it is published. It returns
// true if the pod finished by itself, because without the record the pod could run again after a
// restart of podd. Other ends do not wait for the disk, because stopping the pod may be what frees
// the disk. If the record of such an end is lost, the end is decided again, or the loss does no
// harm; see evictGrace, deadline and endByShutdown.
//
// If mustStopAtOnce returns true, even the end of a pod that finishes by itself does not wait for
// the disk. If the record of this end is lost, the end is decided again from the containers in the
// runtime.
func (f *facts) mustRecordFirst(fin *PodEnd) bool {
	return fin.Reason == "" && !f.in.Desired.HasFinishedAtSource() && !f.mustStopAtOnce()
}

// mustStopAtOnce reports whether the remaining containers of the pod must be stopped without
// waiting for the disk.
func (f *facts) mustStopAtOnce() bool {
	return f.in.ForceStop || f.in.Eviction.AppliesTo(f.in.Desired) || f.isPastDeadline()
}

// mayHaveVolumes reports whether the directory of the desired version may contain volumes that were
// not released.
func (f *facts) mayHaveVolumes() bool {
	for _, dir := range f.in.PodDirs {
		if dir.UID == f.in.Desired.UID && dir.MayHaveVolumes {
			return true
		}
	}
	return false
}
