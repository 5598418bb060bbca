package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// workCounts are of what the workers of pods do.
type workCounts struct {
	took                  *prometheus.HistogramVec
	cgroups               *prometheus.HistogramVec
	orphaned              prometheus.Counter
	restarted, rejections *prometheus.CounterVec
	registered, resource  *prometheus.CounterVec
}

func newWorkCounts() workCounts {
	c := workCounts{
		took:       histograms("kubelet_pod_worker_duration_seconds", "How long what the workers of pods did took.", prometheus.DefBuckets, "operation_type"),
		cgroups:    histograms("kubelet_cgroup_manager_duration_seconds", "How long making, limiting and removing the control groups of pods took.", prometheus.DefBuckets, "operation_type"),
		orphaned:   counter("kubelet_orphaned_runtime_pods_total", "Pods that were found in the runtime and are wanted by no source."),
		restarted:  counters("kubelet_restarted_pods_total", "Pods that were removed and came again with the same UID while they ended.", "static"),
		rejections: counters("kubelet_admission_rejections_total", "Pods that the node did not admit.", "reason"),
		registered: counters("kubelet_device_plugin_registration_total", "Registrations of device plugins.", "resource_name"),
		resource:   counters("kubelet_pod_resources_endpoint_requests_total", "Requests for the resources of pods.", "server_api_version"),
	}
	c.restarted.WithLabelValues("true") // so that a first one is seen to rise
	return c
}

func (c workCounts) all() []prometheus.Collector {
	return []prometheus.Collector{c.took, c.cgroups, c.orphaned, c.restarted, c.rejections, c.registered, c.resource}
}

// Operations of Worked, a kubelet's words for what a worker does.
const (
	Create = "create" // what makes a pod or one of its containers
	Update = "update" // what changes one
	Sync   = "sync"   // what keeps one going
	Kill   = "kill"   // what ends one, and takes away what is left of it
)

// Worked tells of a thing that the worker of a pod has done, or tried to.
func (c workCounts) Worked(operation string, took time.Duration) {
	c.took.WithLabelValues(operation).Observe(took.Seconds())
}

// Cgroup tells of a pod's control group that was made or limited ("create"), or
// removed ("destroy").
func (c workCounts) Cgroup(operation string, took time.Duration) {
	c.cgroups.WithLabelValues(operation).Observe(took.Seconds())
}

// PluginRegistered tells of a device plugin that was taken; resource is what it
// serves.
func (c workCounts) PluginRegistered(resource string) {
	c.registered.WithLabelValues(resource).Inc()
}

// ResourcesAsked tells of a request for the resources of pods, in a version of the
// service: "v1".
func (c workCounts) ResourcesAsked(version string) { c.resource.WithLabelValues(version).Inc() }

// rejection is a kubelet's word for a reason: resources of device plugins, which
// may have any name, are counted as one.
func rejection(reason string) string {
	switch reason {
	case "AppArmor", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden",
		"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods":
		return reason
	}
	if strings.HasPrefix(reason, "OutOf") {
		return "OutOfExtendedResources"
	}
	return "Other"
}

// came counts what is unusual about how a pod appears, see Metrics.Pod. One that
// nobody wants has nothing but its names and its end.
func (c workCounts) came(before, after *server.PodView) {
	ends := after.Pod.DeletionTimestamp != nil
	switch {
	case ends && after.Path == "" && (before == nil || before.Path == "" && before.Pod.DeletionTimestamp == nil):
		c.orphaned.Inc()
	case before != nil && before.Pod.DeletionTimestamp != nil && !ends && before.Pod.UID == after.Pod.UID:
		c.restarted.WithLabelValues("true").Inc()
	}
}

// tellWorking: by what the pods are at, and whether anybody wants them.
func tellWorking(v *server.View, tell teller) {
	type key struct{ lifecycle, config, static string }
	counts := map[key]int{}
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		for config, static := range map[string]string{"desired": "true", "orphan": "true", "runtime_only": "unknown"} {
			counts[key{lifecycle, config, static}] = 0
		}
	}
	for _, p := range v.Pods {
		k := key{"sync", "desired", "true"}
		switch {
		case p.Pod.DeletionTimestamp == nil:
			if phase := p.Pod.Status.Phase; phase == v1.PodSucceeded || phase == v1.PodFailed {
				k.lifecycle = "terminated"
				if p.Sandbox != "" {
					k.lifecycle = "terminating"
				}
			}
		case p.Path == "":
			k = key{"terminating", "runtime_only", "unknown"}
		default:
			k = key{"terminating", "orphan", "true"}
		}
		counts[k]++
	}
	for k, n := range counts {
		tell(workingPods, float64(n), k.lifecycle, k.config, k.static)
	}
}
