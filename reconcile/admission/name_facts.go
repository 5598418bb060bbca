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

// NameFacts contains the facts about one pod name. Decide returns the Memory; the caller sets the
// other fields.
type NameFacts struct {
	Memory
	Key types.NamespacedName
	// Report is the newest report of the worker; nil before the first report. HasReported reports
	// whether the worker has reported on its first observation.
	Report      *state.Report
	HasReported bool
	// Observed is the pod in the newest snapshot; nil if the runtime has no pod of this name.
	Observed *runtime.Pod
	// PastRecords contains the records of the name that podd wrote before it was restarted.
	PastRecords []state.Record
}

// Memory is the data about a pod name that the caller passes from one call of Decide to the next.
// Its slices are never modified.
type Memory struct {
	// Order is the newest order for the worker of the name.
	Order state.Order
	// Admitted contains the versions that may have reservations. These are the desired version, if
	// it was admitted, and each earlier version while one of its containers or sandboxes runs.
	Admitted []*manifest.Pod
	// ReservedVersions contains the versions that may have running containers, with the sizes for
	// which they have reservations.
	ReservedVersions []*manifest.Pod
	// Deletion is the requested deletion of the pod; nil if there is none.
	Deletion *plan.Deletion
	// preempted is the last version that was evicted to make room for another pod; nil if there is
	// none.
	preempted *manifest.Pod
	// sourceKind and sourceName are the kind and the name of the source that last contained the
	// pod.
	sourceKind, sourceName string
}

// IsFinished reports whether the pod has terminated and only its records and logs remain.
func (n *NameFacts) IsFinished() bool {
	return n.Report != nil && n.Report.Finished != nil && n.Report.Version != nil && n.Report.Decision.Phase == plan.PhaseCleanedUp
}

// observedIncarnations returns the newest observed incarnations of a name.
func (n *NameFacts) observedIncarnations() []runtime.Incarnation {
	switch {
	case n.Report != nil:
		return n.Report.Observed
	case n.Observed != nil:
		return n.Observed.Incarnations
	}
	return nil
}

// addAdmitted adds p to Admitted, or replaces an equal version.
func (m *Memory) addAdmitted(p *manifest.Pod) {
	if i := slices.IndexFunc(m.Admitted, func(q *manifest.Pod) bool { return state.EqualVersion(p, q) }); i >= 0 {
		m.Admitted = slices.Clone(m.Admitted)
		m.Admitted[i] = p
		return
	}
	m.Admitted = append(slices.Clone(m.Admitted), p)
}

// clearDeletion sets m.Deletion to nil if the deleted pod is desired again, and m.Order, the last order
// to the worker, did not contain it. desired is the desired pod; nil if no pod is desired.
func (m *Memory) clearDeletion(desired *manifest.Pod) {
	del, oldDesired := m.Deletion, m.Order.Desired
	if del != nil && desired != nil && desired.UID == del.UID && (oldDesired == nil || oldDesired.UID != del.UID) {
		m.Deletion = nil
	}
}

// setDeletion records a requested deletion of the pod with UID uid in m. It does nothing if an
// earlier deletion of this pod has the same or a shorter grace period.
func (m *Memory) setDeletion(uid types.UID, grace time.Duration, now time.Time) {
	if d := m.Deletion; d == nil || d.UID != uid || d.Grace > grace {
		m.Deletion = plan.NewDeletion(d, uid, grace, now)
	}
}
