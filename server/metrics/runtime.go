package metrics

import (
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
)

// runtimeCounts are of the container runtime.
type runtimeCounts struct {
	calls, failed *prometheus.CounterVec
	took          *prometheus.HistogramVec
	relist, apart prometheus.Histogram
	seen          prometheus.Gauge
	lastLook      *moment
}

func newRuntimeCounts() runtimeCounts {
	return runtimeCounts{
		calls:  counters("kubelet_runtime_operations_total", "Calls of the container runtime.", "operation_type"),
		failed: counters("kubelet_runtime_operations_errors_total", "Calls of the container runtime that failed.", "operation_type"),
		took:   histograms("kubelet_runtime_operations_duration_seconds", "How long calls of the container runtime took.", callBuckets, "operation_type"),
		relist: histogram("kubelet_pleg_relist_duration_seconds", "How long looking at all pods of the runtime took.", callBuckets),
		apart:  histogram("kubelet_pleg_relist_interval_seconds", "The time between two looks at all pods of the runtime.", callBuckets),
		seen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_pleg_last_seen_seconds", Help: "When all pods of the runtime were last looked at, in seconds since 1970.",
		}),
		lastLook: &moment{},
	}
}

func (c runtimeCounts) all() []prometheus.Collector {
	return []prometheus.Collector{c.calls, c.failed, c.took, c.relist, c.apart, c.seen}
}

// Call counts a call by the CRI's name of its method, "RunPodSandbox".
func (c runtimeCounts) Call(method string, took time.Duration, err error) {
	operation := operation(method)
	c.calls.WithLabelValues(operation).Inc()
	c.took.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil {
		c.failed.WithLabelValues(operation).Inc()
	}
}

// operation is a kubelet's word for a method: "run_podsandbox".
func operation(method string) string {
	switch method {
	case "UpdateContainerResources":
		return "update_container"
	case "ListContainers", "ListImages", "ListPodSandbox", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandboxStats":
		method = strings.Replace(method, "PodSandbox", "Podsandbox", 1)
	}
	var b strings.Builder
	for i, r := range method {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Relisted tells of a look at all pods.
func (c runtimeCounts) Relisted(began time.Time, took time.Duration) {
	c.relist.Observe(took.Seconds())
	c.seen.Set(float64(began.UnixNano()) / 1e9)
	if before := c.lastLook.swap(began); !before.IsZero() {
		c.apart.Observe(began.Sub(before).Seconds())
	}
}
