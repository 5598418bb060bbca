package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// A Name is what is known about one pod name. Admission changes nothing but the Memory.
type Name struct {
	Memory
	Key types.NamespacedName
	// Report is the newest report of the worker; nil before the first. Reported reports
	// whether the worker has reported on its first observation.
	Report   *state.Report
	Reported bool
	// Observed is the pod as of the newest snapshot; nil if the runtime has none.
	Observed *runtime.Pod
	// Past has the records of an earlier podd.
	Past []state.Record
}

// Memory is what admission remembers of a pod name. Its slices are never modified.
type Memory struct {
	// Order is the newest one.
	Order state.Order
	// Admitted are versions that may hold reservations: the desired one, and earlier ones
	// while something of them runs. A rejected version holds none.
	Admitted []*manifest.Pod
	// Held are versions that may have running containers, in the sizes that they hold.
	Held []*manifest.Pod
	// Deletion is the deletion that was requested; nil if there is none.
	Deletion *plan.Delete
	// preempted is the version that was last evicted for another pod; nil if there is none.
	preempted *manifest.Pod
	// kind and source are those of the source that had the pod last.
	kind, source string
}

// IsFinished reports whether the pod has terminated and nothing but its records is left.
func (n *Name) IsFinished() bool {
	return n.Report != nil && n.Report.Finished != nil && n.Report.Version != nil && n.Report.Decision.Phase == plan.PhaseRest
}

// observed returns the incarnations of a name as last observed.
func (n *Name) observed() []runtime.Incarnation {
	switch {
	case n.Report != nil:
		return n.Report.Observed
	case n.Observed != nil:
		return n.Observed.Incarnations
	}
	return nil
}

// addAdmitted records that p may hold reservations.
func (m *Memory) addAdmitted(p *manifest.Pod) {
	if i := slices.IndexFunc(m.Admitted, func(q *manifest.Pod) bool { return state.EqualVersion(p, q) }); i >= 0 {
		m.Admitted = slices.Clone(m.Admitted)
		m.Admitted[i] = p
		return
	}
	m.Admitted = append(slices.Clone(m.Admitted), p)
}

// clearDeletion forgets the deletion of a pod that is desired again. Its next deletion is a
// new one.
func (m *Memory) clearDeletion(wants *manifest.Pod) {
	del, was := m.Deletion, m.Order.Desired
	if del != nil && wants != nil && wants.UID == del.UID && (was == nil || was.UID != del.UID) {
		m.Deletion = nil
	}
}

// setDeletion deletes a pod with a grace, unless a shorter one was requested before.
func (m *Memory) setDeletion(uid types.UID, grace time.Duration, now time.Time) {
	if d := m.Deletion; d == nil || d.UID != uid || d.Grace > grace {
		m.Deletion = &plan.Delete{UID: uid, Grace: grace, At: now}
	}
}
