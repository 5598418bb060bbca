package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// probeCounts are of attempts of probes.
type probeCounts struct {
	attempts *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

func newProbeCounts() probeCounts {
	return probeCounts{
		attempts: counters("prober_probe_total", "Attempts of probes, by what came of them.",
			"probe_type", "result", "container", "pod", "namespace", "pod_uid"),
		took: histograms("prober_probe_duration_seconds", "How long attempts of probes took.", callBuckets,
			"probe_type", "container", "pod", "namespace"),
	}
}

func (c probeCounts) all() []prometheus.Collector { return []prometheus.Collector{c.attempts, c.took} }

// Probe is an attempt of a probe.
type Probe struct {
	Pod       types.NamespacedName
	UID       types.UID
	Container string
	Kind      string // "liveness", "readiness" or "startup"
	Passed    bool
	Took      time.Duration
	Err       error // why no attempt could be made, or nil
}

// Probed counts an attempt.
func (c probeCounts) Probed(p Probe) {
	kind, result := title(p.Kind), "failed"
	switch {
	case p.Err != nil:
		result = "unknown"
	case p.Passed:
		result = "successful"
	}
	c.attempts.WithLabelValues(kind, result, p.Container, p.Pod.Name, p.Pod.Namespace, string(p.UID)).Inc()
	if p.Err == nil {
		c.took.WithLabelValues(kind, p.Container, p.Pod.Name, p.Pod.Namespace).Observe(p.Took.Seconds())
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Forget drops what was counted for a pod that is no more.
func (c probeCounts) Forget(pod types.NamespacedName) {
	of := prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace}
	c.attempts.DeletePartialMatch(of)
	c.took.DeletePartialMatch(of)
}

// forgetUID drops what only a pod that another of its name replaced has.
func (c probeCounts) forgetUID(uid types.UID) {
	c.attempts.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
}
