package plan

import (
	"fmt"

	"podd/runtime"
)

// liveForeignIncarnation returns a live incarnation of another agent; nil if there is none.
func (f *facts) liveForeignIncarnation() *runtime.Incarnation {
	for i := range f.foreignIncarnations {
		if IsLive(&f.foreignIncarnations[i]) {
			return &f.foreignIncarnations[i]
		}
	}
	return nil
}

// adoptableIncarnation returns an incarnation of another agent that podd must stop before it starts
// the desired pod; nil if there is none. Such an incarnation is live, or has the UID of the desired
// pod. In the second case, its names in the runtime would conflict with the names of the desired
// pod. Incarnations of another podd are excluded.
func (f *facts) adoptableIncarnation() *runtime.Incarnation {
	if f.in.Desired == nil || !f.in.Node.AdoptKubeletPods {
		return nil
	}
	for i := range f.foreignIncarnations {
		inc := &f.foreignIncarnations[i]
		if inc.Labels[runtime.LabelInstance] == "" && (IsLive(inc) || inc.UID == f.in.Desired.UID && !f.in.Desired.HasFinishedAtSource()) {
			return inc
		}
	}
	return nil
}

// hasAdoptable reports whether podd must stop an incarnation of another agent; see
// adoptableIncarnation.
func (f *facts) hasAdoptable() bool { return f.adoptableIncarnation() != nil }

// stopForeign stops the incarnation that adoptableIncarnation returns.
func (f *facts) stopForeign(d *Decision) {
	d.Why = "adopted"
	f.addCleanup(d, StopForeign{ID: f.adoptableIncarnation().ID})
}

// isNameInUse reports whether only another agent runs a pod with the desired name. A sandbox of
// podd without containers does not count: if both agents create a sandbox at the same time, podd
// removes its own.
func (f *facts) isNameInUse() bool {
	return f.in.Desired != nil && f.liveForeignIncarnation() != nil && (f.current == nil || !IsLive(f.current) || f.hasUnusedSandbox())
}

// hasUnusedSandbox reports whether the pod has a ready sandbox in which no container was created.
func (f *facts) hasUnusedSandbox() bool {
	return f.current != nil && f.current.Ready && len(f.current.Containers) == 0 && !f.hasStartsInFlight()
}

// waitForeign waits until another agent's pod with the desired name was removed.
func (f *facts) waitForeign(d *Decision) {
	if f.hasUnusedSandbox() {
		f.addCleanup(d, StopSandbox{ID: f.current.ID, Why: "another agent has also created the pod"})
	}
	d.Why = "a pod of this name that podd did not create runs on this runtime; remove that pod, or start podd with --adopt"
	if id := f.liveForeignIncarnation().Labels[runtime.LabelInstance]; id != "" {
		d.Why = fmt.Sprintf("a pod of this name that belongs to podd instance %.40s runs on this runtime; if that instance is in use, remove the pod there; if its root directory was moved or is not mounted yet, start podd with that directory; if that directory is lost, take over the pods of the instance with --adopt-instance=%.40s", id, id)
	}
	d.NeedsUser = true
	d.Reason = "NameInUse"
}
