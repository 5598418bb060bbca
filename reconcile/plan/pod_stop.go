package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

func (f *facts) mustStop() bool { return f.nextToStop() != nil }

func (f *facts) stopStale(d *Decision) {
	inc, why := f.nextToStop(), "changed"
	switch {
	case f.in.Desired == nil && f.in.Previous != nil && f.in.Previous.Traits.DeletedAtSource:
		why = "deleted from the cluster"
	case f.in.Desired == nil:
		why = "manifest removed"
	case f.in.isStopping(inc.ID):
		why = f.in.History.Stopping.Why
	case IsCreatedFrom(inc, f.in.Desired):
		why = "created twice"
	default:
		if was := FindVersion(inc, f.in.Previous); was != nil && DescribeQoSChange(was.Spec, f.in.Desired.Spec) != "" {
			why += ": " + DescribeQoSChange(was.Spec, f.in.Desired.Spec)
		}
	}
	f.stop(d, inc, why)
}

// DescribeQoSChange returns why a change of cpu or memory cannot be applied to a running pod: the
// QoS class would change. It returns "" if the class stays the same.
func DescribeQoSChange(was, is *v1.Pod) string {
	before, after := manifest.QoS(was), manifest.QoS(is)
	if before == after {
		return ""
	}
	return fmt.Sprintf("QoS class %s becomes %s, and a pod keeps its class as long as it runs", before, after)
}

// checkDone sets Done when nothing of this name is left; cleanUp removes the rest.
func (f *facts) checkDone(d *Decision) {
	d.Done = len(f.stale)+len(f.mine)+len(f.in.Dirs)+len(f.in.DirsInUse) == 0 && !f.in.Unobserved && !f.hasPendingAction()
}

// busy reports whether an action with a result that matters is in progress. Probes and hooks of a
// deleted pod do not matter.
func (f *facts) hasPendingAction() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(Probe); !ok && !IsHook(a) {
			return true
		}
	}
	return false
}

func (f *facts) sameUIDLeft() bool {
	remove := RemoveDir{UID: f.in.Desired.UID}
	if f.in.InFlight[remove.Subject()] == Action(remove) {
		return true // its removal also removes logs and cgroups
	}
	for _, dir := range f.in.Dirs {
		if dir.UID == f.in.Desired.UID && !dir.of(f.in.Desired) {
			return true
		}
	}
	return false
}
