package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"podd/manifest/condition"
	"podd/server"
)

// resizeCounts are the metrics about resizes of pods.
type resizeCounts struct{ deferredDuration *prometheus.HistogramVec }

// deferredBuckets are the kubelet's buckets in seconds for deferred resizes.
var deferredBuckets = []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}

func newResizeCounts() resizeCounts {
	return resizeCounts{deferredDuration: newHistogramVec("kubelet_pod_deferred_resize_duration_seconds",
		"Time in seconds for which a resize of a pod was deferred, by how the deferral ended (accepted, reverted or terminated) and the range of the pod's priority.",
		deferredBuckets, "resolution", "priority_bucket")}
}

// Reasons why a resize is no longer deferred. The names are those of the kubelet.
const (
	resizeAccepted   = "accepted"   // the node has admitted the resize
	resizeReverted   = "reverted"   // the pod was changed to the resources that it already has
	resizeTerminated = "terminated" // the pod has terminated or was deleted
)

// update records the end of a deferred resize, if the resize is no longer pending; see
// Metrics.UpdatePod.
func (c resizeCounts) update(before, after *server.PodView, now time.Time) {
	if before == nil || condition.Find(after.Pod.Status.Conditions, v1.PodResizePending) != nil {
		return
	}
	resolution := resizeAccepted
	switch phase := after.Pod.Status.Phase; {
	case after.Pod.DeletionTimestamp != nil, before.Pod.UID != after.Pod.UID, phase == v1.PodSucceeded, phase == v1.PodFailed:
		resolution = resizeTerminated
	case condition.Find(after.Pod.Status.Conditions, v1.PodResizeInProgress) == nil && !hasSameResources(&before.Pod.Spec, &after.Pod.Spec):
		resolution = resizeReverted
	}
	c.endDeferred(before, resolution, now)
}

// endDeferred records the end of the deferred resize of p. It does nothing if p has none.
func (c resizeCounts) endDeferred(p *server.PodView, resolution string, now time.Time) {
	pending := condition.Find(p.Pod.Status.Conditions, v1.PodResizePending)
	if pending == nil || pending.Reason != v1.PodReasonDeferred {
		return
	}
	took := max(now.Sub(pending.LastTransitionTime.Time), 0)
	c.deferredDuration.WithLabelValues(resolution, priorityLabel(p.Pod)).Observe(took.Seconds())
}

// collectResizes emits the number of pods with a resize that is pending or in progress.
func collectResizes(v *server.View, emit emitter) {
	type key struct{ reason, priority string }
	pending, inProgress := map[key]int{}, 0
	for _, p := range v.Pods {
		if c := condition.Find(p.Pod.Status.Conditions, v1.PodResizePending); c != nil {
			pending[key{strings.ToLower(c.Reason), priorityLabel(p.Pod)}]++
		}
		if condition.Find(p.Pod.Status.Conditions, v1.PodResizeInProgress) != nil {
			inProgress++
		}
	}
	for k, n := range pending {
		emit(pendingResizesDesc, float64(n), k.reason, k.priority)
	}
	emit(resizesInProgressDesc, float64(inProgress))
}

// hasSameResources reports whether the containers of two versions of a pod have the same resources.
func hasSameResources(a, b *v1.PodSpec) bool {
	resources := func(s *v1.PodSpec) (all []v1.ResourceRequirements) {
		for _, list := range [][]v1.Container{s.InitContainers, s.Containers} {
			for i := range list {
				all = append(all, list[i].Resources)
			}
		}
		return all
	}
	return apiequality.Semantic.DeepEqual(resources(a), resources(b)) && apiequality.Semantic.DeepEqual(a.Resources, b.Resources)
}

// criticalPriority is the lowest priority of critical pods.
const criticalPriority = 2_000_000_000

// priorityLabel returns the kubelet's label for the range of a pod's priority.
func priorityLabel(p *v1.Pod) string {
	if p.Spec.Priority == nil {
		return "normal"
	}
	switch n := *p.Spec.Priority; {
	case n >= criticalPriority:
		return "system-critical"
	case n >= 100_000:
		return "high"
	case n > 0:
		return "medium"
	case n == 0:
		return "normal"
	case n > -1000:
		return "low"
	}
	return "very-low"
}
