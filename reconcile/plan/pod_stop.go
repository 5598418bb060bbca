package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// mustStop reports whether there is an incarnation that must be stopped.
func (f *facts) mustStop() bool { return f.nextToStop() != nil }

// stopStale stops the incarnation that nextToStop returns.
func (f *facts) stopStale(d *Decision) {
	inc, why := f.nextToStop(), "changed"
	switch {
	case f.in.StopAllReason != "" && f.in.isSandboxStopping(inc.ID):
		why = f.in.History.Stopping.Why
	case f.in.StopAllReason != "":
		why = f.in.StopAllReason
	case f.in.Desired == nil && f.in.Previous != nil && f.in.Previous.Traits.DeletedOnlyBySource:
		why = "deleted from the cluster"
	case f.in.Desired == nil:
		why = "manifest removed"
	case f.in.isSandboxStopping(inc.ID):
		why = f.in.History.Stopping.Why
	case IsCreatedFrom(inc, f.in.Desired):
		why = "created twice"
	default:
		if oldVersion := FindVersion(inc, f.in.Previous); oldVersion != nil && DescribeQoSChange(oldVersion.Object, f.in.Desired.Object) != "" {
			why += ": " + DescribeQoSChange(oldVersion.Object, f.in.Desired.Object)
		}
	}
	f.stop(d, inc, why)
}

// DescribeQoSChange returns why a change of cpu or memory cannot be applied while a pod runs: the
// change would alter the QoS class of the pod. It returns "" if both pods have the same QoS class.
func DescribeQoSChange(oldPod, newPod *v1.Pod) string {
	oldClass, newClass := manifest.QoS(oldPod), manifest.QoS(newPod)
	if oldClass == newClass {
		return ""
	}
	return fmt.Sprintf("the QoS class would change from %s to %s, but cannot change while the pod runs", oldClass, newClass)
}

// checkFullyRemoved sets d.FullyRemoved if no sandbox, directory or action of this name exists.
// cleanUp removes what still exists.
func (f *facts) checkFullyRemoved(d *Decision) {
	d.FullyRemoved = len(f.incarnationsToStop)+len(f.desiredIncarnations)+len(f.in.PodDirs)+len(f.in.DirsInUse) == 0 && !f.in.MayHaveUnobserved && !f.hasPendingAction()
}

// hasPendingAction reports whether an action other than a probe or a hook is in progress. The
// results of probes and hooks of a deleted pod are ignored.
func (f *facts) hasPendingAction() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(RunProbe); !ok && !IsHook(a) {
			return true
		}
	}
	return false
}

// hasEarlierDirectory reports whether the desired version cannot start yet, because the directory
// of an earlier version with the same UID must be removed first.
func (f *facts) hasEarlierDirectory() bool {
	remove := RemoveDir{UID: f.in.Desired.UID}
	if f.in.InFlight[remove.Subject()] == Action(remove) {
		return true // wait until the directory is removed, because its removal also removes logs and cgroups
	}
	for _, dir := range f.in.PodDirs {
		if dir.UID == f.in.Desired.UID && !dir.mayBelongTo(f.in.Desired) {
			return true
		}
	}
	return false
}
