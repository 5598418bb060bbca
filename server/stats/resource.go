package stats

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/server"
)

// resourceHandler returns a handler that serves the metrics for metrics-server.
func resourceHandler(m server.Meter) http.Handler {
	return collectorsFunc(func(ctx context.Context) []prometheus.Collector {
		return []prometheus.Collector{resourceCollector{ctx, m}}
	})
}

// resourceCollector collects the metrics for one request.
type resourceCollector struct {
	ctx   context.Context
	meter server.Meter
}

var (
	podLabels       = []string{"pod", "namespace"}
	containerLabels = []string{"container", "pod", "namespace"}

	nodeCPUDesc            = newDesc("node_cpu_usage_seconds_total", "CPU time used by the node, in core-seconds.", nil)
	nodeMemoryDesc         = newDesc("node_memory_working_set_bytes", "Working set of the node in bytes.", nil)
	nodeSwapDesc           = newDesc("node_swap_usage_bytes", "Swap usage of the node in bytes.", nil)
	containerCPUDesc       = newDesc("container_cpu_usage_seconds_total", "CPU time used by the container, in core-seconds.", containerLabels)
	containerMemoryDesc    = newDesc("container_memory_working_set_bytes", "Working set of the container in bytes.", containerLabels)
	containerSwapDesc      = newDesc("container_swap_usage_bytes", "Swap usage of the container in bytes.", containerLabels)
	containerSwapLimitDesc = newDesc("container_swap_limit_bytes", "Swap limit of the container in bytes.", containerLabels)
	containerStartTimeDesc = newDesc("container_start_time_seconds", "Unix time in seconds at which the container started.", containerLabels)
	podCPUDesc             = newDesc("pod_cpu_usage_seconds_total", "CPU time used by the pod, in core-seconds.", podLabels)
	podMemoryDesc          = newDesc("pod_memory_working_set_bytes", "Working set of the pod in bytes.", podLabels)
	podSwapDesc            = newDesc("pod_swap_usage_bytes", "Swap usage of the pod in bytes.", podLabels)
	resourceErrorDesc      = newDesc("resource_scrape_error", "1 if measuring failed, else 0.", nil)
)

func newDesc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (resourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		nodeCPUDesc, nodeMemoryDesc, nodeSwapDesc, containerCPUDesc, containerMemoryDesc, containerSwapDesc, containerSwapLimitDesc, containerStartTimeDesc,
		podCPUDesc, podMemoryDesc, podSwapDesc, resourceErrorDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r resourceCollector) Collect(out chan<- prometheus.Metric) {
	errorValue := 0.0
	s, err := r.meter.Summary(r.ctx, true)
	if err != nil {
		errorValue = 1
	} else {
		metricEmitter{out, nil}.addNode(&s.Node)
		for i := range s.Pods {
			collectPod(out, &s.Pods[i])
		}
	}
	out <- prometheus.MustNewConstMetric(resourceErrorDesc, prometheus.GaugeValue, errorValue)
}

func collectPod(out chan<- prometheus.Metric, p *stats.PodStats) {
	r := metricEmitter{out, []string{p.PodRef.Name, p.PodRef.Namespace}}
	r.addCPU(podCPUDesc, p.CPU)
	r.addMemory(podMemoryDesc, p.Memory)
	r.addSwap(podSwapDesc, nil, p.Swap)
	for i := range p.Containers {
		c := &p.Containers[i]
		r := metricEmitter{out, []string{c.Name, p.PodRef.Name, p.PodRef.Namespace}}
		r.addCPU(containerCPUDesc, c.CPU)
		r.addMemory(containerMemoryDesc, c.Memory)
		r.addSwap(containerSwapDesc, containerSwapLimitDesc, c.Swap)
		if c.StartTime.Unix() > 0 {
			out <- prometheus.MustNewConstMetric(containerStartTimeDesc, prometheus.GaugeValue, float64(c.StartTime.UnixNano())/1e9, r.labels...)
		}
	}
}

// metricEmitter emits the metrics of an object. Unknown values are omitted.
type metricEmitter struct {
	out    chan<- prometheus.Metric
	labels []string
}

func (r metricEmitter) add(d *prometheus.Desc, kind prometheus.ValueType, at time.Time, v float64) {
	r.out <- prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(d, kind, v, r.labels...))
}

func (r metricEmitter) addNode(n *stats.NodeStats) {
	r.addCPU(nodeCPUDesc, n.CPU)
	r.addMemory(nodeMemoryDesc, n.Memory)
	r.addSwap(nodeSwapDesc, nil, n.Swap)
}

func (r metricEmitter) addCPU(d *prometheus.Desc, s *stats.CPUStats) {
	if s != nil && s.UsageCoreNanoSeconds != nil {
		r.add(d, prometheus.CounterValue, s.Time.Time, float64(*s.UsageCoreNanoSeconds)/1e9)
	}
}

func (r metricEmitter) addMemory(d *prometheus.Desc, s *stats.MemoryStats) {
	if s != nil && s.WorkingSetBytes != nil {
		r.add(d, prometheus.GaugeValue, s.Time.Time, float64(*s.WorkingSetBytes))
	}
}

// addSwap emits the usage and, if limit is not nil, the limit.
func (r metricEmitter) addSwap(used, limit *prometheus.Desc, s *stats.SwapStats) {
	if s == nil {
		return
	}
	var n float64
	if s.SwapUsageBytes != nil {
		n = float64(*s.SwapUsageBytes)
		r.add(used, prometheus.GaugeValue, s.Time.Time, n)
	}
	if limit != nil && s.SwapAvailableBytes != nil {
		r.add(limit, prometheus.GaugeValue, s.Time.Time, float64(*s.SwapAvailableBytes)+n)
	}
}
