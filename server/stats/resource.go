package stats

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/server"
)

// Resource serves what metrics-server reads.
func Resource(m server.Meter) http.Handler {
	return scrape(func(ctx context.Context) []prometheus.Collector {
		return []prometheus.Collector{resource{ctx, m}}
	})
}

// resource collects for one request.
type resource struct {
	ctx   context.Context
	meter server.Meter
}

var (
	ofPod       = []string{"pod", "namespace"}
	ofContainer = []string{"container", "pod", "namespace"}

	nodeCPU         = desc("node_cpu_usage_seconds_total", "Processor time that the node used, in seconds of one core.", nil)
	nodeMemory      = desc("node_memory_working_set_bytes", "Memory of the node that is in use and cannot be taken back.", nil)
	nodeSwap        = desc("node_swap_usage_bytes", "Swap that the node uses.", nil)
	containerCPU    = desc("container_cpu_usage_seconds_total", "Processor time that the container used, in seconds of one core.", ofContainer)
	containerMemory = desc("container_memory_working_set_bytes", "Memory of the container that is in use and cannot be taken back.", ofContainer)
	containerSwap   = desc("container_swap_usage_bytes", "Swap that the container uses.", ofContainer)
	containerLimit  = desc("container_swap_limit_bytes", "Swap that the container may use.", ofContainer)
	containerStart  = desc("container_start_time_seconds", "When the container was started, in seconds since 1970.", ofContainer)
	podCPU          = desc("pod_cpu_usage_seconds_total", "Processor time that the pod used, in seconds of one core.", ofPod)
	podMemory       = desc("pod_memory_working_set_bytes", "Memory of the pod that is in use and cannot be taken back.", ofPod)
	podSwap         = desc("pod_swap_usage_bytes", "Swap that the pod uses.", ofPod)
	scrapeError     = desc("scrape_error", "1 when the figures could not be read; resource_scrape_error is the newer name.", nil)
	resourceError   = desc("resource_scrape_error", "1 when the figures could not be read.", nil)
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (resource) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		nodeCPU, nodeMemory, nodeSwap, containerCPU, containerMemory, containerSwap, containerLimit, containerStart,
		podCPU, podMemory, podSwap, scrapeError, resourceError,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r resource) Collect(out chan<- prometheus.Metric) {
	failed := 0.0
	s, err := r.meter.Summary(r.ctx, true)
	if err != nil {
		failed = 1
	} else {
		rows{out, nil}.node(&s.Node)
		for i := range s.Pods {
			pod(out, &s.Pods[i])
		}
	}
	for _, d := range []*prometheus.Desc{scrapeError, resourceError} {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, failed)
	}
}

func pod(out chan<- prometheus.Metric, p *stats.PodStats) {
	of := rows{out, []string{p.PodRef.Name, p.PodRef.Namespace}}
	of.cpu(podCPU, p.CPU)
	of.memory(podMemory, p.Memory)
	of.swap(podSwap, nil, p.Swap)
	for i := range p.Containers {
		c := &p.Containers[i]
		of := rows{out, []string{c.Name, p.PodRef.Name, p.PodRef.Namespace}}
		of.cpu(containerCPU, c.CPU)
		of.memory(containerMemory, c.Memory)
		of.swap(containerSwap, containerLimit, c.Swap)
		if c.StartTime.Unix() > 0 {
			out <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue, float64(c.StartTime.UnixNano())/1e9, of.labels...)
		}
	}
}

// rows are metrics of one thing. What is not known has none.
type rows struct {
	out    chan<- prometheus.Metric
	labels []string
}

func (r rows) add(d *prometheus.Desc, kind prometheus.ValueType, at time.Time, v float64) {
	r.out <- prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(d, kind, v, r.labels...))
}

func (r rows) node(n *stats.NodeStats) {
	r.cpu(nodeCPU, n.CPU)
	r.memory(nodeMemory, n.Memory)
	r.swap(nodeSwap, nil, n.Swap)
}

func (r rows) cpu(d *prometheus.Desc, s *stats.CPUStats) {
	if s != nil && s.UsageCoreNanoSeconds != nil {
		r.add(d, prometheus.CounterValue, s.Time.Time, float64(*s.UsageCoreNanoSeconds)/1e9)
	}
}

func (r rows) memory(d *prometheus.Desc, s *stats.MemoryStats) {
	if s != nil && s.WorkingSetBytes != nil {
		r.add(d, prometheus.GaugeValue, s.Time.Time, float64(*s.WorkingSetBytes))
	}
}

// swap adds what is used, and the limit where it has a metric.
func (r rows) swap(used, limit *prometheus.Desc, s *stats.SwapStats) {
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
