// Package metrics counts what podd does and tells it to Prometheus: under the
// names and labels by which dashboards and alerts know a kubelet, as far as
// podd has such facts, and under podd_… what only podd has.
//
//	GET /metrics          everything but what has a path of its own
//	GET /metrics/probes   the attempts of probes
//	GET /metrics/slis     the checks of podd's own health
//
// What the published state shows is read off it when someone asks; what is over
// by then is counted as it happens, by the methods of Metrics. These may be
// called concurrently and never block.
//
// Of the metrics of a kubelet that dashboards know there are none of what podd
// does not do or cannot know:
//
//	node_startup_duration_seconds, pod_status_sync_duration_seconds,
//	rest_client_requests_total       a cluster's API server counts and times them itself
//	preemptions                      the pod's status and its event tell of it
//	image_garbage_collected_total, lifecycle_handler_http_fallbacks_total,
//	orphan_pod_cleaned_volumes       it does none of it
//	graceful_shutdown_…_time_seconds   of a machine that is going down; events tell of it
//	pleg_discard_events              no event is lost: it is only a reason to look
//	cri_losing_support               podd serves old runtimes as well
//	eviction_stats_age_seconds       what evicts is measured in the same turn
//	storage_operation_duration_seconds   volumes are made together, whatever their kinds
//	first_network_pod_start_sli_duration_seconds, …   a kubelet's own internals
//
// Those of the certificates that a cluster gives are told where there is one.
//
// kubelet_pod_worker_duration_seconds is of the single things a worker does, not of a
// whole turn as in a kubelet: here no turn waits for anything.
package metrics

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// Options say what is told. Kubernetes is required.
type Options struct {
	// CgroupVersion is 1 or 2; 0: not told.
	CgroupVersion int
	// Kubernetes is the version whose kubelet podd stands for, "v1.34.4".
	Kubernetes string
	// NotAdmitted is the rule of pods that the node does not take.
	NotAdmitted string
	// Certificate is until when that of the kubelet's port is good; nil: there is no
	// port.
	Certificate func() (time.Time, error)
	// ClientCertificate is until when the one by which a cluster knows the node is good,
	// an error for none; nil: there is no cluster.
	ClientCertificate func() (time.Time, error)
	// Mirrors is how many pods a cluster has that stand for one from a file or URL; nil:
	// there is no cluster.
	Mirrors func() int
	// Disks measures what pods have on disk, or tells what was measured a while ago;
	// nil: nobody does.
	Disks func(context.Context) (*Disks, error)
}

// Metrics has the counts. The zero value is of no use; see New.
type Metrics struct {
	runtimeCounts
	podCounts
	startCounts
	workCounts
	probeCounts
	driverCounts
	requestCounts
	checkCounts
	certificateCounts
	o                 Options
	all, probes, slis *prometheus.Registry
}

// New returns Metrics that have counted nothing.
func New(o Options) *Metrics {
	m := &Metrics{
		runtimeCounts: newRuntimeCounts(), podCounts: newPodCounts(),
		startCounts: newStartCounts(), workCounts: newWorkCounts(),
		probeCounts: newProbeCounts(), driverCounts: newDriverCounts(), requestCounts: newRequestCounts(),
		checkCounts: newCheckCounts(), certificateCounts: newCertificateCounts(),
		o: o, all: prometheus.NewRegistry(), probes: prometheus.NewRegistry(), slis: prometheus.NewRegistry(),
	}
	m.all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.all.MustRegister(m.runtimeCounts.all()...)
	m.all.MustRegister(m.podCounts.all()...)
	m.all.MustRegister(m.startCounts.all()...)
	m.all.MustRegister(m.workCounts.all()...)
	m.all.MustRegister(m.requestCounts.all()...)
	if o.ClientCertificate != nil {
		m.all.MustRegister(m.certificateCounts.all(o.ClientCertificate)...)
	}
	m.all.MustRegister(m.driverTook)
	m.slis.MustRegister(m.checkCounts.all()...)
	m.probes.MustRegister(m.probeCounts.all()...)
	m.probes.MustRegister(began{collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})})
	return m
}

// Pod tells that a pod is now shown as after. before is how it was shown, nil
// for one that was not; neither is kept.
func (m *Metrics) Pod(before, after *server.PodView, now time.Time) {
	m.podCounts.shown(before, after)
	m.startCounts.shown(before, after, now)
	m.came(before, after)
	if after.Rule == m.o.NotAdmitted && after.Problem && (before == nil || before.Rule != after.Rule || before.Pod.Status.Reason != after.Pod.Status.Reason) {
		m.rejections.WithLabelValues(rejection(after.Pod.Status.Reason)).Inc()
	}
	if before != nil && before.Pod.UID != after.Pod.UID {
		m.forgetUID(before.Pod.UID) // each edit of a static pod makes another
	}
}

// Gone drops what only a pod that is no more has, that was shown as last.
func (m *Metrics) Gone(last *server.PodView) {
	m.Forget(types.NamespacedName(last.Key()))
	m.ended(last.Pod.UID)
}

// Handler serves all three paths, with what state shows. Call it once.
func (m *Metrics) Handler(state server.Viewer) http.Handler {
	m.all.MustRegister(stateOf{m.o, state})
	if m.o.Disks != nil {
		m.all.MustRegister(disksOf(m.o.Disks))
	}
	mux := http.NewServeMux()
	for path, r := range map[string]*prometheus.Registry{"/metrics": m.all, "/metrics/probes": m.probes, "/metrics/slis": m.slis} {
		mux.Handle("GET "+path, promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	}
	return mux
}

// began is when the process began, and no more of what is known of it: counters
// that are told apart from the rest begin anew with it.
type began struct{ prometheus.Collector }

// Describe implements prometheus.Collector.
func (b began) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, to) }

// Collect implements prometheus.Collector.
func (b began) Collect(to chan<- prometheus.Metric) {
	all := make(chan prometheus.Metric)
	go func() {
		defer close(all)
		b.Collector.Collect(all)
	}()
	for m := range all {
		if strings.Contains(m.Desc().String(), `"process_start_time_seconds"`) {
			to <- m
		}
	}
}

// Buckets in seconds: of calls and attempts, which are quick, and of what may
// wait for a registry.
var (
	callBuckets  = prometheus.ExponentialBuckets(0.005, 2.5, 14)
	startBuckets = []float64{0.1, 0.2, 0.3, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
)

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
