package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// probeCounts are the metrics about probes.
type probeCounts struct {
	attempts      *prometheus.CounterVec
	probeDuration *prometheus.HistogramVec
}

func newProbeCounts() probeCounts {
	return probeCounts{
		attempts: newCounterVec("prober_probe_total", "Probes, by result.",
			"probe_type", "result", "container", "pod", "namespace", "pod_uid"),
		probeDuration: newHistogramVec("prober_probe_duration_seconds", "Duration in seconds of probes that passed.", prometheus.DefBuckets,
			"probe_type", "container", "pod", "namespace"),
	}
}

func (c probeCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.attempts, c.probeDuration}
}

// Probe is the result of one attempt of a probe.
type Probe struct {
	Pod       types.NamespacedName
	UID       types.UID
	Container string
	Kind      string // "liveness", "readiness" or "startup"
	Passed    bool
	Duration  time.Duration
	Err       error // set if the probe could not be attempted
}

// RecordProbe records the result of a probe.
func (c probeCounts) RecordProbe(p Probe) {
	kind, result := capitalize(p.Kind), "failed"
	switch {
	case p.Err != nil:
		result = "unknown"
	case p.Passed:
		result = "successful"
	}
	c.attempts.WithLabelValues(kind, result, p.Container, p.Pod.Name, p.Pod.Namespace, string(p.UID)).Inc()
	if p.Err == nil && p.Passed { // as in the kubelet; a failed probe often has the duration of its timeout
		c.probeDuration.WithLabelValues(kind, p.Container, p.Pod.Name, p.Pod.Namespace).Observe(p.Duration.Seconds())
	}
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// deletePodSeries deletes the series of a pod that was deleted.
func (c probeCounts) deletePodSeries(pod types.NamespacedName) {
	labels := prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace}
	c.attempts.DeletePartialMatch(labels)
	c.probeDuration.DeletePartialMatch(labels)
}

// deleteUIDSeries deletes the series of a pod that was replaced by a pod with the same name.
func (c probeCounts) deleteUIDSeries(uid types.UID) {
	c.attempts.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
}
