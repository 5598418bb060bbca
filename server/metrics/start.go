package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
	"podd/server"
)

// startCounts contains the metrics about the start latency of pods. Only pods that have not started
// yet are tracked.
type startCounts struct {
	startDuration, sliDuration, totalDuration, workerStartDuration prometheus.Histogram
	firstNetworkPod                                                prometheus.Gauge
	mountDuration                                                  *prometheus.HistogramVec
	*podStarts
}

func newStartCounts() startCounts {
	return startCounts{
		startDuration:       newHistogram("kubelet_pod_start_duration_seconds", "Time in seconds from the first observation of a pod until all of its containers were started.", pullBuckets),
		totalDuration:       newHistogram("kubelet_pod_start_total_duration_seconds", "Time in seconds from the creation of a pod in the API server until all of its containers were observed as started. Without a cluster, from the first observation of a static pod.", pullBuckets),
		sliDuration:         newHistogram("kubelet_pod_start_sli_duration_seconds", "Same as kubelet_pod_start_total_duration_seconds, but without the time for image pulls and init containers, and only of pods without volumes that may contain persistent data.", pullBuckets),
		workerStartDuration: newHistogram("kubelet_pod_worker_start_duration_seconds", "Time in seconds from the first observation of a pod until its worker started the first action.", prometheus.DefBuckets),
		firstNetworkPod: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_first_network_pod_start_sli_duration_seconds",
			Help: "Value that kubelet_pod_start_sli_duration_seconds has for the first pod that does not use the network of the host; 0 if there is none.",
		}),
		mountDuration: newHistogramVec("volume_operation_total_seconds",
			"Time in seconds from the first observation of a pod until a volume of the pod was mounted, by plugin. It includes waiting for objects and for the attachment of the volume.",
			driverBuckets, "plugin_name", "operation_name"),
		podStarts: &podStarts{byUID: map[types.UID]*podStart{}},
	}
}

func (c startCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.startDuration, c.sliDuration, c.totalDuration, c.workerStartDuration, c.firstNetworkPod, c.mountDuration}
}

// podStarts contains the pods that are starting.
type podStarts struct {
	mu    sync.Mutex // guards all following fields
	byUID map[types.UID]*podStart
	// hasNetworkPod reports whether firstNetworkPod was set.
	hasNetworkPod bool
}

// podStart contains what was recorded about a pod that is starting.
type podStart struct {
	hasTotal       bool            // whether the total duration and the SLI include the pod
	observedAt     time.Time       // time of the first observation of the pod
	hasFirstAction bool            // whether RecordFirstAction was called; false if the pod already ran when it was first observed
	pulls          []span          // image pulls for the pod
	mounted        map[string]bool // names of the volumes that were mounted
}

// A span is a period that is not counted as start latency of the pod itself.
type span struct{ from, to time.Time }

// RecordFirstAction records that the worker of a pod has executed an action that began at the given
// time. Only the first call for each start of a pod has an effect.
func (c startCounts) RecordFirstAction(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byUID[uid]; s != nil && !s.hasFirstAction {
		s.hasFirstAction = true
		c.workerStartDuration.Observe(max(at.Sub(s.observedAt), 0).Seconds())
	}
}

// RecordPullTime records the period of an image pull for a pod. The pull may have failed.
func (c startCounts) RecordPullTime(uid types.UID, from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byUID[uid]; s != nil {
		if n := len(s.pulls); n == maxSpans {
			s.pulls[n-1].to = to // if there are many attempts, the rest is recorded as one long pull
			return
		}
		s.pulls = append(s.pulls, span{from, to})
	}
}

// maxSpans limits the number of pulls that are recorded for a pod.
const maxSpans = 64

// update tracks a pod from its first observation until all of its containers have
// started; see Metrics.UpdatePod.
func (c startCounts) update(before, after *server.PodView, o Options, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := after.Pod
	if before != nil && before.Pod.UID != p.UID {
		delete(c.byUID, before.Pod.UID)
	}
	if p.UID == "" {
		return
	}
	s := c.byUID[p.UID]
	switch {
	case p.DeletionTimestamp != nil || p.Status.Phase == v1.PodFailed || restartCount(p) > 0:
		delete(c.byUID, p.UID)
	case s == nil && !allStarted(p) && (before == nil || before.Pod.UID != p.UID):
		c.byUID[p.UID] = &podStart{observedAt: now, hasTotal: hasTotal(p, o)}
	case s != nil && allStarted(p):
		delete(c.byUID, p.UID)
		if !s.hasFirstAction {
			return
		}
		c.startDuration.Observe(max(now.Sub(s.observedAt), 0).Seconds())
		if !s.hasTotal {
			return
		}
		createdAt := s.observedAt
		if !o.isStatic(p) && !p.CreationTimestamp.IsZero() {
			createdAt = p.CreationTimestamp.Time
		}
		total := max(now.Sub(createdAt), 0)
		c.totalDuration.Observe(total.Seconds())
		if isStateful(p) {
			return
		}
		sli := max(total-totalTime(append(s.pulls, initSpans(p)...)), 0)
		c.sliDuration.Observe(sli.Seconds())
		if !p.Spec.HostNetwork && !c.hasNetworkPod {
			c.hasNetworkPod = true
			c.firstNetworkPod.Set(sli.Seconds())
		}
	}
}

// stopTracking removes a pod that was deleted.
func (c startCounts) stopTracking(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byUID, uid)
}

// hasTotal reports whether the total duration and the SLI include a pod that podd observes for the first
// time. As in the kubelet, they omit static pods on a node of a cluster. They also omit a pod that an earlier
// podd began to start, because its duration would include the time during which no podd ran.
func hasTotal(p *v1.Pod, o Options) bool {
	if o.isStatic(p) {
		return !o.HasCluster
	}
	// podd may already have set the start time of a new pod, because views may omit intermediate states
	return p.Status.StartTime == nil || !p.Status.StartTime.Time.Before(o.StartTime)
}

// isStateful reports whether a pod has a volume that may contain persistent data. As in the kubelet, the SLI
// (service level indicator) of Kubernetes does not include such a pod, because its start depends on storage.
func isStateful(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
		return v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil
	})
}

// initSpans returns the run times of the init containers that have terminated.
func initSpans(p *v1.Pod) []span {
	var spans []span
	for _, c := range p.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil {
			spans = append(spans, span{t.StartedAt.Time, t.FinishedAt.Time})
		}
	}
	return spans
}

// totalTime returns the total time that is covered by at least one of the spans.
func totalTime(spans []span) (sum time.Duration) {
	order.Slice(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var countedUntil time.Time
	for _, s := range spans {
		if s.from.Before(countedUntil) {
			s.from = countedUntil
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			countedUntil = s.to
		}
	}
	return sum
}

// allStarted reports whether all regular containers are running or have terminated.
func allStarted(p *v1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.ContainerID == "" {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) == len(p.Spec.Containers)
}

func restartCount(p *v1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}
