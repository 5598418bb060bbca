package plan

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// killTimeout is the time in which the runtime must have killed the containers of an evicted pod after the
// end of their grace period. The time is short compared with the time after which package eviction
// evicts another pod.
const killTimeout = 5 * time.Second

// KillProcesses kills the processes of an evicted pod without the runtime, through the cgroups of its
// containers and of its sandbox.
type KillProcesses struct {
	UID       types.UID
	SandboxID string
	WereFound bool // whether an earlier KillProcesses has found a cgroup of a container
}

// ReleaseVolumes unmounts and removes the volumes of an evicted pod in whose cgroup KillProcesses has left
// no process. ReleaseResources follows when the runtime has stopped the sandbox.
type ReleaseVolumes struct {
	UID       types.UID
	SandboxID string
}

// Subject implements Action.
func (a KillProcesses) Subject() string  { return "kill/" + a.SandboxID }
func (a ReleaseVolumes) Subject() string { return "dir/" + string(a.UID) }

// Verb implements Action.
func (KillProcesses) Verb() string  { return "kill" }
func (ReleaseVolumes) Verb() string { return "empty" }

func (KillProcesses) String() string  { return "kill the pod's processes without the runtime" }
func (ReleaseVolumes) String() string { return "release volumes" }

func (KillProcesses) sealed()  {}
func (ReleaseVolumes) sealed() {}

// A KillProgress describes how much of an evicted pod podd has released without the runtime.
type KillProgress int

// The values of a KillProgress. The zero value means that nothing was released.
const (
	ContainersFound KillProgress = iota + 1 // the cgroup of the pod contained a cgroup of one of its containers
	ProcessesKilled                         // no process remains in the cgroup of the pod
	VolumesReleased                         // in addition to ProcessesKilled
)

// isPodEviction reports whether e evicts a pod because the node is short of a resource, or because the
// pod exceeds a storage limit. e may be nil.
func (e *Eviction) isPodEviction() bool {
	return e != nil && cmp.Or(e.Reason, ReasonEvicted) == ReasonEvicted
}

// evictionOf returns the grace period of incarnation inc if inc is being stopped because its pod was
// evicted. A pod that runs again after its eviction is not evicted any more: the end of the eviction is
// removed before the pod starts (Decision.Resume), and the eviction of a deleted pod concerns only a
// sandbox that is being stopped.
func (f *facts) evictionOf(d *Decision, inc *runtime.Incarnation) (t stopBudget, isEvicted bool) {
	isStopping := f.in.Desired == nil || f.in.isSandboxStopping(inc.ID)
	if del := f.deletionOf(inc); isStopping && del != nil && del.Eviction.isPodEviction() {
		return stopBudget{since: del.At, grace: del.Grace}, true
	}
	fin := cmp.Or(d.Finished, f.in.History.Finished)
	if inc.Foreign || fin == nil || fin.Reason != ReasonEvicted || fin.UID != inc.UID || fin.Hash != inc.Annotations[runtime.AnnotationPodHash] {
		return t, false
	}
	if f.in.Desired != nil && !fin.AppliesTo(f.desired) {
		return t, false
	}
	return stopBudget{since: fin.At, grace: effectiveGrace(inc, fin)}, true
}

// mayKill reports whether killEvicted may apply.
func (f *facts) mayKill(d *Decision) bool { return d.Phase != PhaseHold && !d.UseSuccessor }

// killEvicted kills the processes of an evicted pod and releases its volumes if the runtime has not
// stopped the pod within killTimeout after the grace period, because the runtime does not respond or
// fails. Otherwise the eviction would release nothing, and the node would evict one pod after the other.
// The runtime observes the exits when it works again, as after an OOM kill, and then stops the sandbox.
//
// This is safe for the following reasons. The pod has failed, and does not run again before the runtime
// has stopped the sandbox. The grace period has passed, so a runtime that works would have killed the
// same processes. KillProcesses affects only the containers of the incarnation, by their IDs. The volumes
// are released only when no process of the pod remains, and when no start is in progress.
//
// A pod that is deleted or edited is not killed in this way, as in a kubelet, because its end is not
// urgent for the node.
func (f *facts) killEvicted(d *Decision) {
	for i := range f.in.Observed {
		inc := &f.in.Observed[i]
		t, isEvicted := f.evictionOf(d, inc)
		if !isEvicted || inc.ID == "" || !IsLive(inc) {
			continue
		}
		graceEnd := t.since.Add(t.grace)
		if f.in.FirstObservedAt.After(graceEnd) { // an earlier podd process has evicted the pod, and this one has just requested the stop
			graceEnd = f.in.FirstObservedAt
		}
		if killAt := graceEnd.Add(minGrace + killTimeout); f.in.Now.Before(killAt) {
			d.wakeAt(killAt)
			continue
		}
		f.killIncarnation(d, inc)
	}
}

// killIncarnation adds the next action that releases the resources of incarnation inc without the
// runtime, and explains it.
func (f *facts) killIncarnation(d *Decision, inc *runtime.Incarnation) {
	explanation := "the runtime did not stop the pod in time"
	if progress := f.in.History.Kills[inc.ID]; progress < ProcessesKilled {
		if fail := f.addRetry(d, KillProcesses{UID: inc.UID, SandboxID: inc.ID, WereFound: progress == ContainersFound}); fail.Message != "" {
			explanation += ", so podd tries to kill its processes: " + fail.Message
		} else {
			explanation += ", so podd kills its processes"
		}
	} else {
		explanation += "; no process remains in its cgroup"
		if f.mayReleaseVolumes(inc) {
			if fail := f.addRetry(d, ReleaseVolumes{UID: inc.UID, SandboxID: inc.ID}); fail.Message != "" {
				explanation += "; " + fail.Message
			}
		}
	}
	if d.Why != "" {
		explanation = strings.TrimSuffix(d.Why, ". ") + "; " + explanation
	}
	d.Why, d.NeedsUser = explanation, true
}

// mayReleaseVolumes reports whether the volumes of incarnation inc must be released and no process that podd
// can find uses them. No process remains in the cgroup of inc.
func (f *facts) mayReleaseVolumes(inc *runtime.Incarnation) bool {
	if f.in.History.Kills[inc.ID] == VolumesReleased || f.in.DirsInUse[inc.UID] || f.mayHaveUnknownObject() {
		return false
	}
	for i := range f.in.Observed {
		if o := &f.in.Observed[i]; o.UID == inc.UID && !o.Foreign && IsLive(o) && f.in.History.Kills[o.ID] < ProcessesKilled {
			return false
		}
	}
	return true
}

// addRetry adds action a unless it has failed and its retry is not due. It returns the last failure.
func (f *facts) addRetry(d *Decision, a Action) Failure {
	fail := f.in.History.CleanupFailures[a.Subject()]
	if f.in.Now.Before(fail.RetryAt) {
		d.wakeAt(fail.RetryAt)
	} else {
		d.addAction(a)
	}
	return fail
}

// isEvictedUnreachable reports whether the desired version was evicted and still runs, and the runtime does
// not respond.
func (f *facts) isEvictedUnreachable() bool {
	if f.in.Node.RuntimeReachable || f.in.Desired == nil || f.in.Desired.HasFinishedAtSource() || f.current == nil || !IsLive(f.current) {
		return false
	}
	if fin := f.in.History.Finished; fin.AppliesTo(f.desired) {
		return fin.Reason == ReasonEvicted
	}
	return f.in.Eviction.AppliesTo(f.in.Desired) && f.in.Eviction.isPodEviction()
}

// endUnreachable records the end of a pod that was evicted while the runtime does not respond. Actions in
// progress continue, except for starts. killEvicted releases the resources of the pod.
func (f *facts) endUnreachable(d *Decision) {
	f.waitRuntimeReachable(d)
	fin := f.in.History.Finished
	if !fin.AppliesTo(f.desired) {
		fin = f.endByEviction(f.in.Eviction)
		d.Finished = fin
	}
	d.Why = strings.TrimSuffix(fin.explanation(), ". ") + "; " + cmp.Or(f.in.Node.RuntimeMessage, "the runtime does not respond")
	d.Reason, d.NeedsUser = fin.Reason, true
	f.cancelStarts(d)
	f.checkOverdue(d, f.current, stopBudget{since: fin.At, grace: effectiveGrace(f.current, fin)})
}
