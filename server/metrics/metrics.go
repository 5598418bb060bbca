// Package metrics counts podd's operations and serves Prometheus metrics. Metrics that the kubelet
// also serves have the kubelet's names and labels, so that dashboards and alerts for the kubelet
// work. The names of podd's own metrics begin with podd_.
//
//	GET /metrics          everything except the metrics that have another path
//	GET /metrics/probes   attempts of probes
//	GET /metrics/slis     podd's own health checks
//
// Metrics about the published state are computed for each request. Everything else is counted by
// the methods of Metrics when it happens. The methods may be called concurrently and never block.
//
// The following metrics of the kubelet have no meaning in podd and are missing:
//
//	cri_losing_support               names the version of the kubelet that will not support
//	                                 an old runtime; podd supports old runtimes
//	orphan_pod_cleaned_volumes, orphan_pod_cleaned_volumes_errors   describe the last
//	                                 periodic sweep; in podd, a worker removes each orphaned
//	                                 pod at once, and podd_problems counts failures
//	pleg_discard_events              podd has no queue of events that can be full: an
//	                                 event only marks a pod, and a mark is never lost
//	sleep_action_terminated_early_total   no operation sleeps, so none is terminated; a
//	                                 worker waits for the end of the sleep and of the grace
//	                                 period at the same time
//	pod_infeasible_resizes_total     counts resizes that a manager or a feature gate of the
//	                                 kubelet rejects; podd has neither
//	pod_deferred_accepted_resizes_total   counts what triggered the retry of a resize; podd
//	                                 does not retry, but admits again after each change
//	imagemanager_…_usage_percent     podd has no cache of the records of image pulls
//	pod_watch_events_dropped_total   podd drops no events of the gRPC API of pods
//	volume_manager_selinux_volume_context_mismatch_warnings_total   podd does not record the
//	                                 labels of volumes that it mounts without a label
//	websocket_streaming_requests_total   the runtime serves streams over WebSocket
//	csi_node_storage_health_status   podd does not query the health of CSI volumes
//	force_cleaned_failed_volume_…, reconstruct_volume_operations_…   when it starts, the
//	                                 kubelet reconstructs from directories which volumes
//	                                 are mounted; podd reads the mount table before each
//	                                 operation
//	plugin_manager_total_plugins     podd does not count plugins by the path of their socket
//	scrape_error                     the deprecated name of resource_scrape_error
//	aggregator_…, apiserver_…, workqueue_…   libraries that podd does not have
//	cardinality_…, disabled_metrics_total, hidden_metrics_total, registered_metrics_total
//	                                 Kubernetes' library of metrics, which podd does not use
//	dra_…                            podd supports no DRA drivers
//	resource_manager_…, cpu_manager_…, memory_manager_…, topology_manager_…,
//	container_aligned_…              podd has no CPU, memory or topology manager
//	evented_pleg_…                   podd has no separate mode for events of the runtime
//	started_host_process_…           Windows only
//
// Metrics about certificates that a cluster issues, and about requests to its API server, are served
// only if there is a cluster.
//
// In the kubelet, kubelet_pod_worker_duration_seconds measures a whole sync of a pod. In podd, it
// measures each action of a worker, because podd's workers do not block while an action runs.
// Likewise, kubelet_pod_resize_duration_milliseconds measures the resize of each container.
// volume_operation_total_seconds includes only the first mount of each volume of a pod that starts. In the
// kubelet, it also includes later mounts that update files.
//
// The kubelet never includes static pods in kubelet_pod_start_total_duration_seconds,
// kubelet_pod_start_sli_duration_seconds and kubelet_first_network_pod_start_sli_duration_seconds. podd includes
// them if there is no cluster, because all pods are then static.
//
// In podd, kubelet_started_containers_errors_total also counts a start that failed because the image of an image
// volume could not be pulled. The kubelet counts this failure only for the image of the container itself.
package metrics

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// Options configure Metrics. KubernetesVersion is required.
type Options struct {
	// CgroupVersion is 1 or 2. If it is 0, the metric kubelet_cgroup_version is omitted.
	CgroupVersion int
	// KubernetesVersion is the version of the kubelet that podd is compatible with, such
	// as "v1.37.2".
	KubernetesVersion string
	// CredentialConfigHash is the kubelet's hash of the configuration of credential provider plugins; ""
	// without plugins.
	CredentialConfigHash string
	// BootTime is when the host started; zero if it is unknown. StartTime is when podd started.
	BootTime, StartTime time.Time
	// NotAdmittedRule is the ID of the plan rule that applies to pods that the node does not admit.
	NotAdmittedRule string
	// AdmittedPhases are the phases (PodView.Phase) of pods that the node has admitted.
	AdmittedPhases []string
	// HasCluster reports whether the node belongs to a cluster.
	HasCluster bool
	// IsStatic reports whether a pod comes from a file or URL, and not from an API server. If it is
	// nil, all pods are static.
	IsStatic func(*v1.Pod) bool
}

// isStatic reports whether a pod comes from a file or URL.
func (o Options) isStatic(p *v1.Pod) bool { return o.IsStatic == nil || o.IsStatic(p) }

// staticLabel returns the kubelet's value of the label static for a pod.
func (o Options) staticLabel(p *v1.Pod) string {
	if o.isStatic(p) {
		return "true"
	}
	return ""
}

// isRejected reports whether the node rejects a pod. A pod of a cluster has then failed, and a pod of a
// manifest waits for a user.
func (o Options) isRejected(p *server.PodView) bool {
	return p.IsRejected || p.Rule == o.NotAdmittedRule && p.NeedsUser
}

// isActive reports whether the kubelet would count a pod as active: the pod is not rejected and runs, starts or
// stops.
func (o Options) isActive(p *server.PodView) bool {
	return !o.isRejected(p) && (!isTerminal(p.Pod) || p.SandboxID != "")
}

// isTerminal reports whether a pod is in a phase that it never leaves.
func isTerminal(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// Inputs are the sources of the metrics that are computed for each request. State is required.
type Inputs struct {
	// State is the published state.
	State server.Viewer
	// CertificateExpiry returns the expiry of the certificate of the kubelet's port. It
	// is nil if there is no such port.
	CertificateExpiry func() (time.Time, error)
	// ClientCertificateExpiry returns the expiry of the node's client certificate, or an
	// error if the node uses another credential. It is nil if there is no cluster.
	ClientCertificateExpiry func() (time.Time, error)
	// MirrorPodCount returns the number of mirror pods. It is nil if there is no cluster.
	MirrorPodCount func() int
	// CountPodCertificates returns the number of volume sources with a pod certificate by
	// state. It is nil if there is no cluster.
	CountPodCertificates func() map[PodCertificateState]int
	// Disks returns a recent measurement of the disk usage of pods. If it is nil,
	// these metrics are omitted.
	Disks func(context.Context) (*DiskUsage, error)
	// FeatureGates calls visit with each of the kubelet's feature gates: the name, the kubelet's word for the
	// stage, and whether the feature is enabled. If it is nil, the metric is omitted.
	FeatureGates func(visit func(name, stage string, isEnabled bool))
	// PullRecords returns the numbers of stored intents and records of image pulls. If it is nil, these
	// metrics are omitted.
	PullRecords func() (intents, records int)
}

// Metrics contains podd's metrics. The zero value is not usable; see New.
type Metrics struct {
	runtimeCounts
	podCounts
	startCounts
	workCounts
	admissionCounts
	resizeCounts
	probeCounts
	driverCounts
	requestCounts
	checkCounts
	certificateCounts
	clientCounts
	memoryProtection
	podsRequests
	podResourcesRequests
	hookCounts
	volumeCounts
	labelCounts
	shutdownTimes
	nodeStartCounts
	nodeConfigCounts
	credentialCounts
	o                                        Options
	mainRegistry, probeRegistry, sliRegistry *prometheus.Registry
}

// New returns Metrics with all counts at zero.
func New(o Options) *Metrics {
	m := &Metrics{
		runtimeCounts: newRuntimeCounts(), podCounts: newPodCounts(),
		startCounts: newStartCounts(), workCounts: newWorkCounts(),
		admissionCounts: newAdmissionCounts(), resizeCounts: newResizeCounts(),
		probeCounts: newProbeCounts(), driverCounts: newDriverCounts(), requestCounts: newRequestCounts(),
		checkCounts: newCheckCounts(), certificateCounts: newCertificateCounts(), clientCounts: newClientCounts(), memoryProtection: newMemoryProtection(), podsRequests: newPodsRequests(), podResourcesRequests: newPodResourcesRequests(), hookCounts: newHookCounts(), volumeCounts: newVolumeCounts(), labelCounts: newLabelCounts(), shutdownTimes: newShutdownTimes(), nodeStartCounts: newNodeStartCounts(o.BootTime, o.StartTime), nodeConfigCounts: newNodeConfigCounts(), credentialCounts: newCredentialCounts(o.CredentialConfigHash),
		o: o, mainRegistry: prometheus.NewRegistry(), probeRegistry: prometheus.NewRegistry(), sliRegistry: prometheus.NewRegistry(),
	}
	m.mainRegistry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.mainRegistry.MustRegister(m.runtimeCounts.collectors()...)
	m.mainRegistry.MustRegister(m.podCounts.collectors()...)
	m.mainRegistry.MustRegister(m.startCounts.collectors()...)
	m.mainRegistry.MustRegister(m.workCounts.collectors()...)
	m.mainRegistry.MustRegister(m.admitted, m.containersPerPod)
	m.mainRegistry.MustRegister(m.resizeCounts.collectors()...)
	m.mainRegistry.MustRegister(m.requestCounts.collectors()...)
	m.mainRegistry.MustRegister(m.driverDuration, m.volumeOperations, m.volumeMeasurements, m.plainHooks, m.statusSync)
	m.mainRegistry.MustRegister(m.labelCounts.collectors()...)
	m.mainRegistry.MustRegister(m.memoryProtection.collectors()...)
	m.mainRegistry.MustRegister(m.podsRequests.collectors()...)
	m.mainRegistry.MustRegister(m.podResourcesRequests.collectors()...)
	m.mainRegistry.MustRegister(m.shutdownTimes.collectors()...)
	m.mainRegistry.MustRegister(m.nodeStartCounts.collectors()...)
	m.mainRegistry.MustRegister(m.nodeConfigCounts.collectors()...)
	m.mainRegistry.MustRegister(m.credentialCounts.collectors()...)
	m.sliRegistry.MustRegister(m.checkCounts.collectors()...)
	m.probeRegistry.MustRegister(m.probeCounts.collectors()...)
	m.probeRegistry.MustRegister(startTimeCollector{collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})})
	return m
}

// UpdatePod records a change of the published state of a pod. The parameters before and after
// contain the earlier and the later state; before is nil for a new pod. UpdatePod does not retain
// them.
func (m *Metrics) UpdatePod(before, after *server.PodView, now time.Time) {
	m.podCounts.update(before, after)
	m.startCounts.update(before, after, m.o, now)
	m.workCounts.update(before, after, m.o.staticLabel(after.Pod))
	m.admissionCounts.update(before, after, slices.Contains(m.o.AdmittedPhases, after.Phase))
	m.resizeCounts.update(before, after, now)
	if m.o.isRejected(after) && (before == nil || !m.o.isRejected(before) || before.Pod.UID != after.Pod.UID || before.Pod.Status.Reason != after.Pod.Status.Reason) {
		m.rejections.WithLabelValues(rejectionLabel(after.Pod.Status.Reason, after.InsufficientResource)).Inc()
	}
	if before != nil && before.Pod.UID != after.Pod.UID {
		m.userNamespaces.starting.remove(before.Pod.UID)
		m.deleteUIDSeries(before.Pod.UID) // the pod was replaced: each edit of a static pod changes its UID
	}
}

// DeletePod deletes the series of a pod that was deleted. last is the last published
// state of the pod.
func (m *Metrics) DeletePod(last *server.PodView, now time.Time) {
	m.deletePodSeries(types.NamespacedName(last.Key()))
	m.startCounts.stopTracking(last.Pod.UID)
	m.admissionCounts.counted.remove(last.Pod.UID)
	m.userNamespaces.starting.remove(last.Pod.UID)
	m.resizeCounts.endDeferred(last, resizeTerminated, now)
}

// Handler returns an http.Handler for all three paths. It must be called only once.
func (m *Metrics) Handler(in Inputs) http.Handler {
	m.mainRegistry.MustRegister(stateCollector{m.o, in})
	if in.ClientCertificateExpiry != nil {
		m.mainRegistry.MustRegister(m.certificateCounts.collectors(in.ClientCertificateExpiry)...)
		m.mainRegistry.MustRegister(m.clientRequests)
	}
	if in.Disks != nil {
		m.mainRegistry.MustRegister(diskCollector(in.Disks))
	}
	if in.FeatureGates != nil {
		m.mainRegistry.MustRegister(featureCollector(in.FeatureGates))
	}
	if in.PullRecords != nil {
		m.mainRegistry.MustRegister(pullRecordCollector(in.PullRecords))
	}
	mux := http.NewServeMux()
	for path, r := range map[string]*prometheus.Registry{"/metrics": m.mainRegistry, "/metrics/probes": m.probeRegistry, "/metrics/slis": m.sliRegistry} {
		mux.Handle("GET "+path, promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	}
	return mux
}

// A startTimeCollector collects only the process's start time from another collector. Each path
// that serves counters needs the start time, because counters restart from zero with the process.
type startTimeCollector struct{ prometheus.Collector }

// Describe implements prometheus.Collector.
func (c startTimeCollector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c startTimeCollector) Collect(to chan<- prometheus.Metric) {
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		c.Collector.Collect(metrics)
	}()
	for m := range metrics {
		if strings.Contains(m.Desc().String(), `"process_start_time_seconds"`) {
			to <- m
		}
	}
}

// callBuckets and pullBuckets are buckets in seconds, which include those of the kubelet. callBuckets is for
// calls to the runtime. pullBuckets is for image pulls, and for pod starts because they may include a pull.
var (
	callBuckets = prometheus.ExponentialBuckets(0.005, 2.5, 14)
	pullBuckets = []float64{0.1, 0.2, 0.3, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
)

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func newCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func newHistogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
