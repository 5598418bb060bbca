package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podd/server"
)

// podCounts are of what is done to pods.
type podCounts struct {
	pods, podErrors       prometheus.Counter
	sandbox               *prometheus.HistogramVec
	sandboxErrors         *prometheus.CounterVec
	containers, unstarted *prometheus.CounterVec
	pull                  *prometheus.HistogramVec
	evictions             *prometheus.CounterVec
	rules                 *prometheus.CounterVec
}

func newPodCounts() podCounts {
	return podCounts{
		pods:          counter("kubelet_started_pods_total", "Sandboxes of pods that were asked for."),
		podErrors:     counter("kubelet_started_pods_errors_total", "Sandboxes of pods that could not be made."),
		sandbox:       histograms("kubelet_run_podsandbox_duration_seconds", "How long making a pod's sandbox took.", callBuckets, "runtime_handler"),
		sandboxErrors: counters("kubelet_run_podsandbox_errors_total", "Sandboxes that could not be made.", "runtime_handler"),
		containers:    counters("kubelet_started_containers_total", "Containers whose start was asked for.", "container_type"),
		unstarted:     counters("kubelet_started_containers_errors_total", "Containers that could not be started.", "container_type", "code"),
		pull:          histograms("kubelet_image_pull_duration_seconds", "How long pulling images took.", startBuckets, "image_size_in_bytes"),
		evictions:     counters("kubelet_evictions", "Pods ended because they passed a limit, by what the limit is on.", "eviction_signal"),
		rules:         counters("podd_rule_matches_total", "How often a rule became the one that decides on a pod.", "rule"),
	}
}

func (c podCounts) all() []prometheus.Collector {
	return []prometheus.Collector{
		c.pods, c.podErrors, c.sandbox, c.sandboxErrors, c.containers, c.unstarted, c.pull, c.evictions, c.rules,
	}
}

// Sandbox tells of an attempt to make one; handler is "" for the runtime's own.
func (c podCounts) Sandbox(handler string, took time.Duration, err error) {
	c.pods.Inc()
	c.sandbox.WithLabelValues(handler).Observe(took.Seconds())
	if err != nil {
		c.podErrors.Inc()
		c.sandboxErrors.WithLabelValues(handler).Inc()
	}
}

// Container tells of an attempt to start one of a kind ("container",
// "init_container", "ephemeral_container"); reason is "" for one that started, else
// what a status calls the failure: "RunContainerError".
func (c podCounts) Container(kind, reason string) {
	c.containers.WithLabelValues(kind).Inc()
	if reason != "" {
		c.unstarted.WithLabelValues(kind, reason).Inc()
	}
}

// Pulled tells of an image that came; size is in bytes.
func (c podCounts) Pulled(size uint64, took time.Duration) {
	c.pull.WithLabelValues(sizeBucket(size)).Observe(took.Seconds())
}

// sizeBucket is a kubelet's word for a size.
func sizeBucket(size uint64) string {
	for _, b := range []struct {
		below uint64
		word  string
	}{
		{10 << 20, "0-10MB"}, {100 << 20, "10MB-100MB"}, {500 << 20, "100MB-500MB"}, {1 << 30, "500MB-1GB"},
		{5 << 30, "1GB-5GB"}, {10 << 30, "5GB-10GB"}, {20 << 30, "10GB-20GB"}, {30 << 30, "20GB-30GB"},
		{40 << 30, "30GB-40GB"}, {60 << 30, "40GB-60GB"}, {100 << 30, "60GB-100GB"},
	} {
		if size < b.below {
			return b.word
		}
	}
	return "GT100GB"
}

// shown counts what a pod went through, see Metrics.Pod.
func (c podCounts) shown(before, after *server.PodView) {
	if after.Rule != "" && (before == nil || before.Rule != after.Rule) {
		c.rules.WithLabelValues(after.Rule).Inc()
	}
	if before != nil && before.Pod.UID == after.Pod.UID && before.Pod.Status.Reason != evicted && after.Pod.Status.Reason == evicted {
		c.evictions.WithLabelValues("localStorage").Inc()
	}
}

const evicted = "Evicted"
