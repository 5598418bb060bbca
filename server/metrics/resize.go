package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest/condition"
	"podd/server"
)

// resizeCounts are the metrics about resizes of pods.
type resizeCounts struct {
	deferredDuration, resizeDuration *prometheus.HistogramVec
	requestedResizes                 *prometheus.CounterVec
}

// deferredBuckets are the kubelet's buckets in seconds for deferred resizes.
var deferredBuckets = []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}

// resizeBuckets are the kubelet's buckets in milliseconds for resizes.
var resizeBuckets = []float64{10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000}

func newResizeCounts() resizeCounts {
	return resizeCounts{
		deferredDuration: newHistogramVec("kubelet_pod_deferred_resize_duration_seconds",
			"Time in seconds for which a resize of a pod was deferred, by how the deferral ended (accepted, reverted or terminated) and the range of the pod's priority.",
			deferredBuckets, "resolution", "priority_bucket"),
		resizeDuration: newHistogramVec("kubelet_pod_resize_duration_milliseconds",
			"Duration in milliseconds of resizing a container or the cgroup of a pod, by whether it succeeded.", resizeBuckets, "success"),
		requestedResizes: newCounterVec("kubelet_container_requested_resizes_total",
			"Requested resizes of containers, by resource, by requests or limits, and by operation (add, remove, increase or decrease).", "resource", "requirement", "operation"),
	}
}

func (c resizeCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.deferredDuration, c.resizeDuration, c.requestedResizes}
}

// RecordResize records that podd has tried to resize a container or the cgroup of a pod.
func (c resizeCounts) RecordResize(duration time.Duration, err error) {
	c.resizeDuration.WithLabelValues(strconv.FormatBool(err == nil)).Observe(float64(duration.Milliseconds()))
}

// Reasons why a resize is no longer deferred. The names are those of the kubelet.
const (
	resizeAccepted   = "accepted"   // the node has admitted the resize
	resizeReverted   = "reverted"   // the pod was changed to the resources that it already has
	resizeTerminated = "terminated" // the pod has terminated or was deleted
)

// update counts requested resizes. It also records the end of a deferred resize, if the resize is no
// longer pending; see Metrics.UpdatePod.
func (c resizeCounts) update(before, after *server.PodView, now time.Time) {
	if before == nil {
		return
	}
	if before.Pod.UID == after.Pod.UID && before.Pod != after.Pod {
		c.countRequested(before.Pod.Spec.InitContainers, after.Pod.Spec.InitContainers)
		c.countRequested(before.Pod.Spec.Containers, after.Pod.Spec.Containers)
	}
	if condition.Find(after.Pod.Status.Conditions, v1.PodResizePending) != nil {
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

// countRequested counts the changes of the resources of containers between two versions of a pod.
func (c resizeCounts) countRequested(before, after []v1.Container) {
	for i := range after {
		oldIndex := slices.IndexFunc(before, func(b v1.Container) bool { return b.Name == after[i].Name })
		if oldIndex < 0 {
			continue
		}
		oldResources, newResources := &before[oldIndex].Resources, &after[i].Resources
		for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
			for requirement, amounts := range map[string][2]v1.ResourceList{"requests": {oldResources.Requests, newResources.Requests}, "limits": {oldResources.Limits, newResources.Limits}} {
				if operation := resizeOperation(amounts[0][name], amounts[1][name]); operation != "" {
					c.requestedResizes.WithLabelValues(string(name), requirement, operation).Inc()
				}
			}
		}
	}
}

// resizeOperation returns the kubelet's label for the change of an amount, or "" if it is the same.
func resizeOperation(before, after resource.Quantity) string {
	switch d := after.Cmp(before); {
	case d == 0:
		return ""
	case before.IsZero():
		return "add"
	case after.IsZero():
		return "remove"
	case d < 0:
		return "decrease"
	}
	return "increase"
}

// endDeferred records the end of the deferred resize of p. It does nothing if p has none.
func (c resizeCounts) endDeferred(p *server.PodView, resolution string, now time.Time) {
	pendingCondition := condition.Find(p.Pod.Status.Conditions, v1.PodResizePending)
	if pendingCondition == nil || pendingCondition.Reason != v1.PodReasonDeferred {
		return
	}
	duration := max(now.Sub(pendingCondition.LastTransitionTime.Time), 0)
	c.deferredDuration.WithLabelValues(resolution, priorityLabel(p.Pod)).Observe(duration.Seconds())
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
	resources := func(s *v1.PodSpec) (requirements []v1.ResourceRequirements) {
		for _, list := range [][]v1.Container{s.InitContainers, s.Containers} {
			for i := range list {
				requirements = append(requirements, list[i].Resources)
			}
		}
		return requirements
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
