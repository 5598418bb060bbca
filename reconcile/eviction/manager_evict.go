package eviction

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

const (
	// evictionCheckInterval is the interval between checks while an evicted pod is being stopped or a
	// finished pod is being cleaned up.
	evictionCheckInterval = time.Second
	// startCheckInterval is the interval between checks while podd starts and does not know all pods.
	startCheckInterval = 100 * time.Millisecond
	// cleanupTimeout is the time after the grace period in which an evicted pod must have stopped.
	// After that, another pod is evicted. A kubelet uses the same value.
	cleanupTimeout = 30 * time.Second
	// reclaimTimeout limits each removal of containers, images or logs, and usageTimeout limits the
	// measurement of pods. If the runtime or the disk does not respond in time, a pod is
	// evicted without waiting for the result.
	reclaimTimeout = 15 * time.Second
	usageTimeout   = 25 * time.Second
	// maxCleanup is the time in which the volumes of a finished pod are usually removed. It also limits
	// the wait for all finished pods, because on a busy node some pod may always be finishing.
	maxCleanup = 5 * time.Second
)

// act reclaims the resource of the most urgent threshold, or evicts a pod. It returns the time until
// the next check. It does nothing while an evicted pod is being stopped or a finished pod is being
// cleaned up, because this may be sufficient, and while podd starts. If there is no pod to evict, it acts
// on a threshold only once in observeInterval, because the kernel may send notifications more often. In the
// meantime it acts on the other thresholds.
func (m *Manager) act(ctx context.Context, d pressure.Decision, observed observation, reports []*state.Report) time.Duration {
	if m.isStarting(time.Now()) {
		return startCheckInterval
	}
	due, pause := m.withoutPaused(d.Due, observed.Layout, reports)
	if len(due) == 0 {
		return pause
	}
	met := due[0]
	if m.isEvicting(reports, met.IsHard(), time.Now()) || m.mustAwaitCleanup(reports, met.Signal, time.Now()) {
		return evictionCheckInterval
	}
	m.o.Record([]event.Event{event.ForEvictionThreshold(met.Signal.Resource(), time.Now())})
	wait, isEffective := m.reclaimOrEvict(ctx, due, observed, reports)
	if !isEffective {
		m.retryAt[met.Threshold] = time.Now().Add(observeInterval)
		if len(due) > 1 {
			return 0 // the next check acts on the next threshold
		}
	}
	return min(wait, pause)
}

// withoutPaused returns the thresholds in due without the paused ones. A threshold is paused for
// observeInterval after the Manager has acted on it without effect, unless a pod can now be evicted. pause
// is the time until the first pause ends, and at most observeInterval.
func (m *Manager) withoutPaused(due []pressure.MetThreshold, l pressure.Layout, reports []*state.Report) (active []pressure.MetThreshold, pause time.Duration) {
	pause = observeInterval
	for _, met := range due {
		if p := time.Until(m.retryAt[met.Threshold]); p > 0 {
			if _, r := m.choosePod(reports, nil, met.Signal, l); r == nil {
				pause = min(pause, p)
				continue
			}
		}
		active = append(active, met)
	}
	return active, pause
}

// isStarting reports whether the Manager must wait because podd has just started and does not know all
// pods. An unknown pod may be the first one to evict, or one that an earlier podd process has evicted. The
// wait is limited to observeInterval, so that evictions do not depend on a source or worker that hangs.
func (m *Manager) isStarting(now time.Time) bool {
	if !m.o.IsStarting() {
		return false
	}
	if m.startDeadline.IsZero() {
		m.startDeadline = now.Add(observeInterval)
	}
	return now.Before(m.startDeadline)
}

// reclaimOrEvict reclaims the resource of the first threshold or, if this is not sufficient, evicts
// a pod. If it is sufficient for this threshold only, the next check acts on the next threshold. A
// reclaim that is effective but needs more time continues with the next check. reclaimOrEvict returns the
// time until the next check. isEffective is false if no pod can be evicted, or if a threshold of memory
// has become due in the meantime.
func (m *Manager) reclaimOrEvict(ctx context.Context, due []pressure.MetThreshold, observed observation, reports []*state.Report) (wait time.Duration, isEffective bool) {
	met, l := due[0], observed.Layout
	isRuntimeHung, available := false, met.Available
	for _, s := range m.reclaimSteps(met.Signal, l) {
		if s.callsRuntime && isRuntimeHung {
			continue
		}
		var err error
		if !m.runUnlessMemoryDue(ctx, met.Signal, func(ctx context.Context) { err = m.reclaim(ctx, s, met.Signal) }) {
			return 0, false
		}
		isTimedOut := errors.Is(err, context.DeadlineExceeded)
		isRuntimeHung = isRuntimeHung || isTimedOut
		amounts := m.o.Observer.Observe()
		before, target := available, met.Quantity
		if o, ok := amounts.Signals[met.Signal]; ok {
			available, target = o.Available, met.Quantity+met.MinReclaim.AmountFor(o.Capacity)
		}
		switch {
		case isResolved(due, amounts):
			m.o.Log.Info("reclaimed a resource without evicting a pod", "signal", met.Signal)
			return m.interval(amounts), true
		case isResolved(due[:1], amounts):
			return evictionCheckInterval, true // a pod must not be evicted because of a resource that is available again
		case isTimedOut && hasProgress(target, before, available):
			return evictionCheckInterval, true
		}
	}
	var usage map[types.UID]*pressure.Usage
	if !m.runUnlessMemoryDue(ctx, met.Signal, func(ctx context.Context) { usage = m.measure(ctx, met.Signal.Resource()) }) {
		return 0, false
	}
	if ctx.Err() == nil && m.evictOne(ctx, met, l, reports, usage) {
		m.reportAges(due, observed.at)
		return evictionCheckInterval, true
	}
	return observeInterval, false
}

// hasProgress reports whether a reclaim that did not end within reclaimTimeout has made at least a tenth
// of the missing amount available. Then no pod is evicted, because removing many images can take minutes.
// target is the amount that must become available. before and after are the available amounts.
func hasProgress(target, before, after int64) bool {
	return after > before && after-before >= (target-before)/10
}

// reportAges calls OnEvict for the thresholds in due. observedAt is when the resources were observed.
func (m *Manager) reportAges(due []pressure.MetThreshold, observedAt time.Time) {
	if m.o.OnEvict == nil {
		return
	}
	for i := range due {
		m.o.OnEvict(due[i].Signal, time.Since(observedAt))
	}
}

// A reclaimStep is a Reclaimer that makes space on the file system that is short of space.
type reclaimStep struct {
	Reclaimer
	callsRuntime bool
}

// reclaimSteps returns the Reclaimers that make space on the file system of signal, in the order in
// which they are used. The first ones remove the data that is easiest to replace.
func (m *Manager) reclaimSteps(signal pressure.Signal, l pressure.Layout) (steps []reclaimStep) {
	if l.ReclaimsContainers(signal) {
		steps = append(steps, reclaimStep{m.o.Containers, true})
	}
	if l.ReclaimsImages(signal) {
		steps = append(steps, reclaimStep{m.o.Images, true}, reclaimStep{m.o.YoungImages, true})
	}
	if l.ReclaimsLogs(signal) {
		steps = append(steps, reclaimStep{m.o.Logs, false})
	}
	return steps
}

// reclaim calls r.Reclaim, and logs and returns its error. It does not use the state of m.
func (m *Manager) reclaim(ctx context.Context, r Reclaimer, signal pressure.Signal) error {
	reclaimCtx, cancel := context.WithTimeout(ctx, reclaimTimeout)
	defer cancel()
	err := r.Reclaim(reclaimCtx)
	if err != nil && ctx.Err() == nil {
		m.o.Log.Warn("reclaiming disk space failed; evicting pods if necessary", "signal", signal, "err", err)
	}
	return err
}

// isResolved reports whether none of the thresholds requires a reclaim any more.
func isResolved(due []pressure.MetThreshold, amounts pressure.Observations) bool {
	for _, t := range due {
		if o, ok := amounts.Signals[t.Signal]; !ok || !t.IsResolved(o) {
			return false
		}
	}
	return true
}

// measure returns the usage of a resource by pod UID; nil if it cannot be measured. It does not use
// the state of m.
func (m *Manager) measure(ctx context.Context, resource v1.ResourceName) map[types.UID]*pressure.Usage {
	measureCtx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	usage, err := m.o.Usage.PodUsage(measureCtx, resource)
	if err != nil && ctx.Err() == nil {
		m.o.Log.Warn("measuring the usage of pods failed; choosing the pod to evict by its priority", "resource", resource, "err", err)
	}
	return usage
}

// evictOne evicts the first pod in the ranking. It returns false if no pod can be evicted.
func (m *Manager) evictOne(ctx context.Context, met pressure.MetThreshold, l pressure.Layout, reports []*state.Report, usage map[types.UID]*pressure.Usage) bool {
	candidate, r := m.choosePod(reports, usage, met.Signal, l)
	if r == nil {
		if !m.hasLogged {
			m.hasLogged = true
			m.o.Log.Warn("the node is short of a resource, but no pod can be evicted", "signal", met.Signal, "available", met.FormatAvailable(), "threshold", met.FormatThreshold())
		}
		return false
	}
	m.evict(ctx, met, candidate, r)
	return true
}

// choosePod returns the first pod in the ranking and its report; nil if no pod can be evicted. An
// evicted pod that did not stop in time is stuck. Stuck pods come last, because evicting them again
// probably releases nothing. A stuck pod that is also being deleted is omitted, because its grace period
// has passed.
func (m *Manager) choosePod(reports []*state.Report, usage map[types.UID]*pressure.Usage, signal pressure.Signal, l pressure.Layout) (pressure.Candidate, *state.Report) {
	byPod := map[*v1.Pod]*state.Report{}
	var candidates, stuckCandidates []pressure.Candidate
	for _, r := range reports {
		if !isEvictable(r) {
			continue
		}
		c := pressure.Candidate{Pod: allocatedPod(r), Usage: usage[r.Pod.UID]}
		byPod[c.Pod] = r
		switch {
		case !m.stuckPods[idOf(r)]:
			candidates = append(candidates, c)
		case r.Version != nil:
			stuckCandidates = append(stuckCandidates, c)
		}
	}
	ranking := slices.Concat(pressure.Rank(candidates, signal, l), pressure.Rank(stuckCandidates, signal, l))
	if len(ranking) == 0 {
		return pressure.Candidate{}, nil
	}
	return ranking[0], byPod[ranking[0].Pod]
}

// allocatedPod returns the pod of r with the requests with which it runs. A request that the node has not
// admitted must not protect the pod from an eviction; a kubelet uses the same requests. For a pod that is
// not desired any more, it returns the last version of the pod.
func allocatedPod(r *state.Report) *v1.Pod {
	if len(r.ReservedVersions) == 0 {
		return r.Pod
	}
	return r.ReservedVersions[0].Object
}

// gracePeriod returns the grace period of a pod that is evicted because of t. For a soft threshold,
// this is the pod's own grace period, limited by the policy.
func (m *Manager) gracePeriod(t pressure.Threshold, pod *v1.Pod) time.Duration {
	if t.IsHard() {
		return excessGracePeriod
	}
	podSeconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		podSeconds = *s
	}
	return max(min(plan.GraceDuration(podSeconds), m.o.Policy.MaxPodGrace), excessGracePeriod)
}

// evict evicts the pod c. r is its report. As in a kubelet, the pod may already be being deleted.
func (m *Manager) evict(ctx context.Context, met pressure.MetThreshold, c pressure.Candidate, r *state.Report) {
	grace := m.gracePeriod(met.Threshold, r.Pod)
	m.awaitedPod = evictedPod{idOf(r), time.Now(), grace}
	m.o.Log.Warn("evicting a pod, because the node is short of a resource", "pod", r.Key.String(), "signal", met.Signal, "available", met.FormatAvailable(), "threshold", met.FormatThreshold())
	message, annotations := pressure.DescribeEviction(met, c)
	// Evict returns an error only if podd is stopping.
	_ = m.o.Router.Evict(ctx, r.Key, plan.Eviction{
		UID: r.Pod.UID, Hash: hashOf(r), Message: message, EventAnnotations: annotations, Grace: grace, Restarts: true, Transition: m.o.Policy.TransitionPeriod,
		Shortage: plan.Shortage{Signal: string(met.Signal), Available: met.FormatAvailable(), Threshold: met.FormatThreshold()},
	})
}

// hashOf returns the hash of the version that an eviction of the pod of r applies to; "" if the pod is
// being deleted.
func hashOf(r *state.Report) string {
	if r.Version == nil {
		return ""
	}
	return r.Version.Hash
}
