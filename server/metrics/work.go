package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// workCounts contains the metrics about pod workers.
type workCounts struct {
	actionDuration            *prometheus.HistogramVec
	cgroupDuration            *prometheus.HistogramVec
	orphanedPods              prometheus.Counter
	restartedPods, rejections *prometheus.CounterVec
	pluginRegistrations       *prometheus.CounterVec
	allocationDuration        *prometheus.HistogramVec
}

func newWorkCounts() workCounts {
	c := workCounts{
		actionDuration:      newHistogramVec("kubelet_pod_worker_duration_seconds", "Duration in seconds of the actions of pod workers.", prometheus.DefBuckets, "operation_type"),
		cgroupDuration:      newHistogramVec("kubelet_cgroup_manager_duration_seconds", "Duration in seconds of creating, updating and removing the cgroups of pods.", prometheus.DefBuckets, "operation_type"),
		orphanedPods:        newCounter("kubelet_orphaned_runtime_pods_total", "Pods in the runtime that come from no source."),
		restartedPods:       newCounterVec("kubelet_restarted_pods_total", "Pods that were deleted and created again with the same UID while they were terminating.", "static"),
		rejections:          newCounterVec("kubelet_admission_rejections_total", "Pods that the node did not admit, by reason.", "reason"),
		pluginRegistrations: newCounterVec("kubelet_device_plugin_registration_total", "Registrations of device plugins.", "resource_name"),
		allocationDuration:  newHistogramVec("kubelet_device_plugin_alloc_duration_seconds", "Duration in seconds of calls of Allocate of device plugins, by resource.", prometheus.DefBuckets, "resource_name"),
	}
	for _, static := range []string{"", "true"} {
		c.restartedPods.WithLabelValues(static) // with this 0, the PromQL function increase() counts the first restart
	}
	return c
}

func (c workCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.actionDuration, c.cgroupDuration, c.orphanedPods, c.restartedPods, c.rejections, c.pluginRegistrations, c.allocationDuration}
}

// Operations for RecordAction, with the kubelet's names.
const (
	OperationCreate = "create" // creates a pod or one of its containers
	OperationUpdate = "update" // changes a pod or a container
	OperationSync   = "sync"   // keeps a pod running
	OperationKill   = "kill"   // terminates a pod or a container, or removes what remains of it
)

// RecordAction records an action that the worker of a pod has completed. The action may
// have failed.
func (c workCounts) RecordAction(operation string, duration time.Duration) {
	c.actionDuration.WithLabelValues(operation).Observe(duration.Seconds())
}

// RecordCgroup records an operation on the cgroup of a pod: "create" if the cgroup was created or
// its limits were set, or "destroy" if the cgroup was removed.
func (c workCounts) RecordCgroup(operation string, duration time.Duration) {
	c.cgroupDuration.WithLabelValues(operation).Observe(duration.Seconds())
}

// RecordPluginRegistration records that a device plugin was registered for a resource.
func (c workCounts) RecordPluginRegistration(resource string) {
	c.pluginRegistrations.WithLabelValues(resource).Inc()
}

// RecordDeviceAllocation records a call of Allocate of the device plugin for a resource. The call may
// have failed.
func (c workCounts) RecordDeviceAllocation(resource string, duration time.Duration) {
	c.allocationDuration.WithLabelValues(resource).Observe(duration.Seconds())
}

// rejectionLabel returns the kubelet's label for the reason of a rejection. insufficient is the
// resource that is insufficient, or "". Four resources have their own label. All others share one
// label, because the names of huge pages contain a page size. The other reasons with their own label are
// in admissionRejectionReasons of pkg/kubelet/kubelet.go. podd omits those that it never uses.
func rejectionLabel(reason, insufficient string) string {
	switch v1.ResourceName(insufficient) {
	case "":
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
		return reason
	default:
		return "OutOfExtendedResources"
	}
	switch reason {
	case "AppArmor", "Evicted", "NodeShutdown", "PodFeatureUnsupported", "PodLevelResourcesNotSupported", "PodOSNotSupported",
		"PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden", "UnexpectedAdmissionError",
		"VolumeAttachmentLimitExceeded":
		return reason
	}
	return "Other"
}

// update counts orphaned pods, and pods that were deleted and then created again with the same
// UID; see Metrics.UpdatePod. An orphaned pod comes from no source and is already being deleted
// when it is first observed. static is the label of the pod.
func (c workCounts) update(before, after *server.PodView, static string) {
	isBeingDeleted := after.Pod.DeletionTimestamp != nil
	switch {
	case isBeingDeleted && !after.IsInSource && (before == nil || !before.IsInSource && before.Pod.DeletionTimestamp == nil):
		c.orphanedPods.Inc()
	case before != nil && before.Pod.DeletionTimestamp != nil && !isBeingDeleted && before.Pod.UID == after.Pod.UID:
		c.restartedPods.WithLabelValues(static).Inc()
	}
}

// collectWorkers emits the number of pods with a worker, by lifecycle phase and by whether a source
// contains the pod (see workingPods in pkg/kubelet/kubelet_pods.go). A pod that is being deleted in the
// API server is still in its source. A rejected pod has no worker in the kubelet.
func (s stateCollector) collectWorkers(v *server.View, emit emitter) {
	type key struct{ lifecycle, config, static string }
	counts := map[key]int{}
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		for _, static := range []string{"", "true"} {
			counts[key{lifecycle, "desired", static}], counts[key{lifecycle, "orphan", static}] = 0, 0
		}
		counts[key{lifecycle, "runtime_only", "unknown"}] = 0
	}
	for _, p := range v.Pods {
		k := key{"sync", "desired", s.staticLabel(p.Pod)}
		switch {
		case p.Pod.DeletionTimestamp == nil:
			if s.isRejected(p) {
				continue
			}
			if isTerminal(p.Pod) {
				k.lifecycle = "terminated"
				if p.SandboxID != "" {
					k.lifecycle = "terminating"
				}
			}
		case len(p.Pod.Spec.Containers) == 0: // podd never had a manifest of the pod
			k = key{"terminating", "runtime_only", "unknown"}
		case !p.IsInSource:
			k.lifecycle, k.config = "terminating", "orphan"
		default:
			k.lifecycle = "terminating"
		}
		counts[k]++
	}
	for k, n := range counts {
		emit(workingPodsDesc, float64(n), k.lifecycle, k.config, k.static)
	}
}
