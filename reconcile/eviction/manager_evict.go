package eviction

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

const (
	// evictedInterval is the interval between checks while an evicted pod is being stopped.
	evictedInterval = time.Second
	// cleanupTimeout is the time after the grace period in which an evicted pod must have stopped.
	// After that, another pod is evicted. A kubelet uses the same value.
	cleanupTimeout = 30 * time.Second
	// reclaimTimeout limits the removal of containers and images, and usageTimeout limits the
	// measurement of pods. If the runtime or the disk does not respond in time, a pod is evicted
	// without them.
	reclaimTimeout = 15 * time.Second
	usageTimeout   = 25 * time.Second
)

// An evictedPod is a pod whose eviction the Manager has requested. It is zero if there is none.
type evictedPod struct {
	key   types.NamespacedName
	uid   types.UID
	until time.Time // the time until which the Manager waits for the pod
}

// act reclaims the resource of the most urgent threshold, or evicts a pod. It returns the time until
// the next check. It does nothing while an evicted pod is being stopped, because stopping that pod
// may be sufficient.
func (m *Manager) act(ctx context.Context, d pressure.Decision, observed pressure.Observations) time.Duration {
	reports := m.o.Reports()
	if m.isEvicting(reports, time.Now()) {
		return evictedInterval
	}
	met := d.Due[0]
	m.o.Record([]event.Event{event.ForEvictionThreshold(met.Signal.Resource(), time.Now())})
	if m.reclaim(ctx, met.Signal, observed.Layout) && m.isResolved(d.Due) {
		m.o.Log.Info("reclaimed a resource without evicting a pod", "signal", met.Signal)
		return observeInterval
	}
	if m.evictOne(ctx, met, observed.Layout, reports) {
		return evictedInterval
	}
	return observeInterval
}

// isEvicting reports whether a pod that was evicted is being stopped. An earlier podd process may
// have evicted the pod.
func (m *Manager) isEvicting(reports []*state.Report, now time.Time) bool {
	for _, r := range reports {
		if fin := r.Finished; fin != nil && r.Decision.Phase != plan.PhaseCleanedUp &&
			fin.Reason == plan.ReasonEvicted && now.Before(fin.At.Add(fin.Grace+cleanupTimeout)) {
			return true
		}
		if r.Key == m.evicted.key && r.Pod.UID == m.evicted.uid && r.Finished == nil && hasProcesses(r) && now.Before(m.evicted.until) {
			return true
		}
	}
	return false
}

// reclaim removes dead containers and unused images if they are on the file system of signal. It
// returns false if there is nothing to remove for this signal.
func (m *Manager) reclaim(ctx context.Context, signal pressure.Signal, l pressure.Layout) bool {
	var all []Reclaimer
	if l.ReclaimsContainers(signal) {
		all = append(all, m.o.Containers)
	}
	if l.ReclaimsImages(signal) {
		all = append(all, m.o.Images)
	}
	for _, r := range all {
		limited, cancel := context.WithTimeout(ctx, reclaimTimeout)
		if err := r.Reclaim(limited); err != nil {
			m.o.Log.Warn("reclaiming disk space failed; evicting pods if necessary", "signal", signal, "err", err)
		}
		cancel()
	}
	return len(all) > 0
}

// isResolved observes the node again, and reports whether none of the thresholds requires a
// reclaim any more.
func (m *Manager) isResolved(due []pressure.Met) bool {
	observed := m.o.Observer.Observe()
	for _, t := range due {
		if o, ok := observed.Signals[t.Signal]; !ok || !t.IsResolved(o) {
			return false
		}
	}
	return true
}

// evictOne evicts the first pod in the ranking. It returns false if no pod can be evicted.
func (m *Manager) evictOne(ctx context.Context, met pressure.Met, l pressure.Layout, reports []*state.Report) bool {
	limited, cancel := context.WithTimeout(ctx, usageTimeout)
	usage, err := m.o.Usage.PodUsage(limited, met.Signal.Resource())
	cancel()
	if ctx.Err() != nil {
		return false // podd is stopping
	}
	if err != nil {
		m.o.Log.Warn("measuring the usage of pods failed; choosing the pod to evict by its priority", "resource", met.Signal.Resource(), "err", err)
	}
	byPod := map[*v1.Pod]*state.Report{}
	var candidates []pressure.Candidate
	for _, r := range reports {
		if isEvictable(r) {
			byPod[r.Pod] = r
			candidates = append(candidates, pressure.Candidate{Pod: r.Pod, Usage: usage[r.Pod.UID]})
		}
	}
	ranking := pressure.Rank(candidates, met.Signal, l)
	if len(ranking) == 0 {
		if !m.hasLogged {
			m.hasLogged = true
			m.o.Log.Warn("the node is short of a resource, but no pod can be evicted", "signal", met.Signal, "available", met.FormatAvailable(), "threshold", met.FormatQuantity())
		}
		return false
	}
	m.evict(ctx, met, ranking[0], byPod[ranking[0].Pod])
	return true
}

// evict evicts the pod c. r is its report. If the pod is being deleted, evict shortens its grace
// period instead.
func (m *Manager) evict(ctx context.Context, met pressure.Met, c pressure.Candidate, r *state.Report) {
	grace := excessGrace
	if !met.IsHard() {
		grace = max(m.o.Policy.MaxPodGrace, excessGrace)
	}
	m.evicted = evictedPod{r.Key, r.Pod.UID, time.Now().Add(grace + cleanupTimeout)}
	m.o.Log.Warn("evicting a pod, because the node is short of a resource", "pod", r.Key.String(), "signal", met.Signal, "available", met.FormatAvailable(), "threshold", met.FormatQuantity())
	// Delete and Evict return an error only if podd is stopping.
	if r.Version == nil {
		_ = m.o.Router.Delete(ctx, r.Key, r.Pod.UID, grace)
		return
	}
	_ = m.o.Router.Evict(ctx, r.Key, plan.Eviction{
		UID: r.Version.UID, Hash: r.Version.Hash, Message: pressure.EvictionMessage(met, c), Grace: grace, Restarts: true,
		Shortage: plan.Shortage{Signal: string(met.Signal), Available: met.FormatAvailable(), Threshold: met.FormatQuantity()},
	})
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
