package stats

import (
	"github.com/google/cadvisor/lib/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// maxMemoryLimit is the largest value that is reported as a memory limit. A larger value means that
// there is no limit; the kernel rounds such values.
const maxMemoryLimit = uint64(1 << 62)

// toContainerStats returns the CPU, memory and swap usage of a cgroup.
func toContainerStats(name string, c *Cgroup) api.ContainerStats {
	s, spec := c.Stats(), &c.Info.Spec
	sampledAt := metav1.NewTime(s.Timestamp)
	out := api.ContainerStats{Name: name, StartTime: metav1.NewTime(spec.CreationTime)}
	if spec.HasCpu {
		out.CPU = &api.CPUStats{Time: sampledAt, UsageNanoCores: c.NanoCores, UsageCoreNanoSeconds: &s.Cpu.Usage.Total, PSI: c.pressure(&s.Cpu.PSI)}
	}
	if !spec.HasMemory {
		return out
	}
	m := s.Memory
	out.Memory = &api.MemoryStats{
		Time: sampledAt, UsageBytes: &m.Usage, WorkingSetBytes: &m.WorkingSet, RSSBytes: &m.RSS,
		PageFaults: &m.ContainerData.Pgfault, MajorPageFaults: &m.ContainerData.Pgmajfault, PSI: c.pressure(&m.PSI),
	}
	out.Memory.AvailableBytes = available(spec.Memory.Limit, m.WorkingSet)
	out.Swap = &api.SwapStats{Time: sampledAt, SwapUsageBytes: &m.Swap, SwapAvailableBytes: available(spec.Memory.SwapLimit, m.Swap)}
	return out
}

// available returns limit - used, or nil if there is no limit.
func available(limit, used uint64) *uint64 {
	if limit > maxMemoryLimit {
		return nil
	}
	n := limit - min(used, limit)
	return &n
}

// pressure converts pressure stall information of c. It returns nil if c has none.
func (c *Cgroup) pressure(p *model.PSIStats) *api.PSIStats {
	if !c.HasPressure {
		return nil
	}
	return &api.PSIStats{Full: api.PSIData(p.Full), Some: api.PSIData(p.Some)}
}

func pressureOfIO(c *Cgroup) *api.IOStats {
	if c == nil || !c.HasPressure || c.Stats().DiskIo == nil {
		return nil
	}
	return &api.IOStats{Time: metav1.NewTime(c.Stats().Timestamp), PSI: c.pressure(&c.Stats().DiskIo.PSI)}
}

// defaultInterface is the network interface whose statistics a summary contains twice: in the list
// of interfaces and as the statistics of the default interface.
const defaultInterface = "eth0"

func networkStats(c *Cgroup) *api.NetworkStats {
	if c == nil || !c.Info.Spec.HasNetwork || c.Stats().Network == nil {
		return nil
	}
	out := &api.NetworkStats{Time: metav1.NewTime(c.Stats().Timestamp)}
	for i := range c.Stats().Network.Interfaces {
		n := &c.Stats().Network.Interfaces[i]
		s := api.InterfaceStats{Name: n.Name, RxBytes: &n.RxBytes, RxErrors: &n.RxErrors, TxBytes: &n.TxBytes, TxErrors: &n.TxErrors}
		if n.Name == defaultInterface {
			out.InterfaceStats = s
		}
		out.Interfaces = append(out.Interfaces, s)
	}
	return out
}
