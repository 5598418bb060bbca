package metrics

import (
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
)

// runtimeCounts are the metrics about the container runtime.
type runtimeCounts struct {
	calls, failedCalls             *prometheus.CounterVec
	callDuration                   *prometheus.HistogramVec
	relistDuration, relistInterval prometheus.Histogram
	podRelistDuration              prometheus.Histogram
	lastRelistGauge                prometheus.Gauge
	lastRelist                     *atomicTime
}

func newRuntimeCounts() runtimeCounts {
	return runtimeCounts{
		calls:             newCounterVec("kubelet_runtime_operations_total", "Calls to the container runtime, by operation.", "operation_type"),
		failedCalls:       newCounterVec("kubelet_runtime_operations_errors_total", "Failed calls to the container runtime, by operation.", "operation_type"),
		callDuration:      newHistogramVec("kubelet_runtime_operations_duration_seconds", "Duration in seconds of calls to the container runtime.", callBuckets, "operation_type"),
		relistDuration:    newHistogram("kubelet_pleg_relist_duration_seconds", "Duration in seconds of relists of all pods of the runtime.", prometheus.DefBuckets),
		relistInterval:    newHistogram("kubelet_pleg_relist_interval_seconds", "Interval in seconds between relists of all pods of the runtime.", prometheus.DefBuckets),
		podRelistDuration: newHistogram("kubelet_pleg_pod_relist_duration_seconds", "Duration in seconds of relists of only the pods that may have changed.", prometheus.DefBuckets),
		lastRelistGauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_pleg_last_seen_seconds", Help: "Unix time in seconds of the last relist of all pods of the runtime.",
		}),
		lastRelist: &atomicTime{},
	}
}

func (c runtimeCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.calls, c.failedCalls, c.callDuration, c.relistDuration, c.relistInterval, c.podRelistDuration, c.lastRelistGauge}
}

// RecordCall records a call of a CRI method, such as "RunPodSandbox".
func (c runtimeCounts) RecordCall(method string, duration time.Duration, err error) {
	operation := operationLabel(method)
	c.calls.WithLabelValues(operation).Inc()
	c.callDuration.WithLabelValues(operation).Observe(duration.Seconds())
	if err != nil {
		c.failedCalls.WithLabelValues(operation).Inc()
	}
}

// operationLabel returns the kubelet's label for a CRI method, such as "run_podsandbox".
func operationLabel(method string) string {
	switch method {
	case "UpdateContainerResources":
		return "update_container"
	case "ListContainers", "ListImages", "ListPodSandbox", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandboxStats",
		"UpdatePodSandboxResources":
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

// RecordRelist records a relist of all pods.
func (c runtimeCounts) RecordRelist(startTime time.Time, duration time.Duration) {
	c.relistDuration.Observe(duration.Seconds())
	c.lastRelistGauge.Set(float64(startTime.UnixNano()) / 1e9)
	if previous := c.lastRelist.swap(startTime); !previous.IsZero() {
		c.relistInterval.Observe(startTime.Sub(previous).Seconds())
	}
}

// RecordPodRelist records a relist of only the pods that may have changed.
func (c runtimeCounts) RecordPodRelist(duration time.Duration) {
	c.podRelistDuration.Observe(duration.Seconds())
}
