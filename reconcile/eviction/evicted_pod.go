package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// A podID identifies a pod and distinguishes it from other pods with the same name.
type podID struct {
	key types.NamespacedName
	uid types.UID
}

func idOf(r *state.Report) podID { return podID{r.Key, r.Pod.UID} }

// An evictedPod is a pod whose eviction the Manager has requested. It is zero if there is none.
type evictedPod struct {
	podID
	evictedAt time.Time
	grace     time.Duration
}

// isInTime reports whether an evicted pod may still stop in time. evictedAt is the time of its
// eviction, and grace is its grace period.
func isInTime(evictedAt time.Time, grace time.Duration, now time.Time) bool {
	return now.Before(evictedAt.Add(grace + cleanupTimeout))
}

// updateEvicted updates m.awaitedPod and m.stuckPods from the present reports.
func (m *Manager) updateEvicted(reports []*state.Report, now time.Time) {
	evictable := map[podID]bool{}
	for _, r := range reports {
		if isEvictable(r) {
			evictable[idOf(r)] = true
		}
	}
	maps.DeleteFunc(m.stuckPods, func(id podID, _ bool) bool { return !evictable[id] })
	e := m.awaitedPod
	if e == (evictedPod{}) || evictable[e.podID] && isInTime(e.evictedAt, e.grace, now) {
		return
	}
	m.awaitedPod = evictedPod{}
	if evictable[e.podID] {
		m.stuckPods[e.podID] = true
		m.o.Log.Warn("an evicted pod did not stop in time; evicting another pod if necessary", "pod", e.key.String())
	}
}

// isEvicting reports whether the Manager must wait for a pod that was evicted and is being stopped.
// An earlier podd process may have evicted the pod. isHard means that the node is short of a
// resource because of a hard threshold. In this case the Manager waits only as long as it waits for
// a pod that was evicted because of a hard threshold.
func (m *Manager) isEvicting(reports []*state.Report, isHard bool, now time.Time) bool {
	maxGrace := plan.MaxGrace
	if isHard {
		maxGrace = excessGracePeriod
	}
	if e := m.awaitedPod; e != (evictedPod{}) && isInTime(e.evictedAt, min(e.grace, maxGrace), now) {
		return true
	}
	for _, r := range reports {
		if end := r.Finished; end != nil && r.Decision.Phase != plan.PhaseCleanedUp &&
			end.Reason == plan.ReasonEvicted && isInTime(end.At, min(end.Grace, maxGrace), now) {
			return true
		}
	}
	return false
}

// mustAwaitCleanup reports whether the Manager must wait for the volumes of a pod that has just finished,
// because removing them may free enough of the disk. A pod that fills a disk often ends by itself when a
// write fails. On a full disk, the end of such a pod may not be recorded yet. The first wait during a
// shortage sets m.cleanupDeadline.
func (m *Manager) mustAwaitCleanup(reports []*state.Report, signal pressure.Signal, now time.Time) bool {
	if signal.Condition() != v1.NodeDiskPressure || !m.cleanupDeadline.IsZero() && !now.Before(m.cleanupDeadline) {
		return false
	}
	isCleaningUp := slices.ContainsFunc(reports, func(r *state.Report) bool {
		return r.Decision.Phase == plan.PhaseWindDown && now.Before(r.DecisionSince.Add(maxCleanup))
	})
	if isCleaningUp && m.cleanupDeadline.IsZero() {
		m.cleanupDeadline = now.Add(maxCleanup)
	}
	return isCleaningUp
}

// isEvictable reports whether stopping the pod would release resources: it has not finished, and
// one of its containers or its sandbox runs. A kubelet also evicts pods that have not started yet,
// which releases nothing.
func isEvictable(r *state.Report) bool { return r.Pod != nil && r.Finished == nil && hasProcesses(r) }

// hasProcesses reports whether a container or a sandbox of the pod runs.
func hasProcesses(r *state.Report) bool {
	for i := range r.Observed {
		if inc := &r.Observed[i]; !inc.Foreign && plan.IsLive(inc) {
			return true
		}
	}
	return false
}
