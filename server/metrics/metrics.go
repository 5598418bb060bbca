// Package metrics counts what podd does and tells it to Prometheus: under the
// names and labels by which dashboards and alerts know a kubelet, as far as
// podd has such facts, and under podd_… what only podd has.
//
//	GET /metrics          everything but what has a path of its own
//	GET /metrics/probes   the attempts of probes
//
// What the published state shows is read off it when someone asks; what is over
// by then is counted as it happens, by the methods of Metrics. These may be
// called concurrently and never block.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"podd/server"
)

// Options say what is told. Kubernetes is required.
type Options struct {
	// CgroupVersion is 1 or 2; 0: not told.
	CgroupVersion int
	// Kubernetes is the version whose kubelet podd stands for, "v1.34.4".
	Kubernetes string
}

// Metrics has the counts. The zero value is of no use; see New.
type Metrics struct {
	runtimeCounts
	podCounts
	probeCounts
	requestCounts
	o           Options
	all, probes *prometheus.Registry
}

// New returns Metrics that have counted nothing.
func New(o Options) *Metrics {
	m := &Metrics{
		runtimeCounts: newRuntimeCounts(), podCounts: newPodCounts(),
		probeCounts: newProbeCounts(), requestCounts: newRequestCounts(),
		o: o, all: prometheus.NewRegistry(), probes: prometheus.NewRegistry(),
	}
	m.all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.all.MustRegister(m.runtimeCounts.all()...)
	m.all.MustRegister(m.podCounts.all()...)
	m.all.MustRegister(m.requestCounts.all()...)
	m.probes.MustRegister(m.probeCounts.all()...)
	return m
}

// Pod tells that a pod is now shown as after. before is how it was shown, nil
// for one that was not; neither is kept.
func (m *Metrics) Pod(before, after *server.PodView, now time.Time) {
	m.shown(before, after, now)
	if before != nil && before.Pod.UID != after.Pod.UID {
		m.forgetUID(before.Pod.UID) // each edit of a static pod makes another
	}
}

// Handler serves both paths, with what state shows. Call it once.
func (m *Metrics) Handler(state server.Viewer) http.Handler {
	m.all.MustRegister(stateOf{m.o, state})
	mux := http.NewServeMux()
	for path, r := range map[string]*prometheus.Registry{"/metrics": m.all, "/metrics/probes": m.probes} {
		mux.Handle("GET "+path, promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	}
	return mux
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
