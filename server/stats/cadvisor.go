package stats

import (
	"context"
	"net/http"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/metrics"
	"github.com/google/cadvisor/lib/model"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"podd/server"
)

// CadvisorHandler returns a handler that serves cAdvisor's metrics with the kubelet's
// labels.
func CadvisorHandler(m server.Meter) http.Handler {
	return collectorsFunc(func(ctx context.Context) []prometheus.Collector {
		p := &provider{ctx: ctx, meter: m}
		p.containers, p.err = m.Containers(ctx)
		return []prometheus.Collector{
			metrics.NewPrometheusMachineCollector(p, p.metricKinds()),
			metrics.NewPrometheusCollector(p, labels, p.metricKinds(), clock.RealClock{}, model.RequestOptions{}),
		}
	})
}

// A provider provides the data for one request to cAdvisor's collectors.
type provider struct {
	ctx        context.Context
	meter      server.Meter
	containers map[string]*model.ContainerInfo
	err        error
}

// metricKinds returns the kinds of metrics to collect. These are the kubelet's kinds without the
// load average, which podd does not measure, and without the metrics of applications. Pressure is
// omitted if the kernel does not report it, because all values would be zero.
func (p *provider) metricKinds() container.MetricSet {
	kinds := container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.DiskIOMetrics: {},
		container.DiskUsageMetrics: {}, container.NetworkUsageMetrics: {}, container.ProcessMetrics: {},
		container.OOMMetrics: {},
	}
	for _, c := range p.containers {
		if len(c.Stats) > 0 && c.Stats[0].Cpu != nil && c.Stats[0].Cpu.PSI != (model.PSIStats{}) {
			kinds[container.PressureMetrics] = struct{}{}
			break
		}
	}
	return kinds
}

// GetRequestedContainersInfo implements cAdvisor's interface. It returns all
// containers.
func (p *provider) GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	return p.containers, p.err
}

// GetMachineInfo implements cAdvisor's interface.
func (p *provider) GetMachineInfo() (*model.MachineInfo, error) { return p.meter.Machine(p.ctx) }

// GetVersionInfo implements cAdvisor's interface.
func (p *provider) GetVersionInfo() (*model.VersionInfo, error) {
	return &model.VersionInfo{KernelVersion: machine.KernelVersion(), ContainerOsVersion: machine.ContainerOsVersion()}, nil
}

// labels returns the labels of a cgroup. Every cgroup has the same label names. The value of a
// label that does not apply is empty. For example, the cgroup of a pod has no container, and the
// cgroup of the node has neither pod nor namespace.
func labels(c *model.ContainerInfo) map[string]string {
	name := ""
	if len(c.Aliases) > 0 {
		name = c.Aliases[0]
	}
	return map[string]string{
		metrics.LabelID: c.Name, metrics.LabelName: name, metrics.LabelImage: c.Spec.Image,
		"pod": c.Spec.Labels[podNameLabel], "namespace": c.Spec.Labels[podNamespaceLabel], "container": c.Spec.Labels[containerNameLabel],
	}
}

// Labels that the kubelet adds to containers.
const (
	podNameLabel       = "io.kubernetes.pod.name"
	podNamespaceLabel  = "io.kubernetes.pod.namespace"
	containerNameLabel = "io.kubernetes.container.name"
)
