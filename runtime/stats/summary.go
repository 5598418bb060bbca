package stats

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// NodeInfo contains the data of a kubelet summary that a Sample does not contain.
type NodeInfo struct {
	Name string
	// PoddStarted is the time at which the podd process was started. It is not the time at which
	// the node booted.
	PoddStarted time.Time
	// HugePageBytes is the total size of the node's huge pages. They are not available memory, because
	// no process can use them as other memory, but the kernel does not add them to the working set. It is
	// 0 if they count as available (feature gate HugepageAwareEviction).
	HugePageBytes uint64
}

// Summarize returns the kubelet's summary of a sample and a disk measurement. If d is nil,
// the summary contains only CPU and memory.
func Summarize(n NodeInfo, s *Sample, d *Disk) *api.Summary {
	node := toContainerStats("", s.Node)
	if m := node.Memory; m != nil && m.AvailableBytes != nil {
		m.AvailableBytes = available(*m.AvailableBytes, n.HugePageBytes)
	}
	out := &api.Summary{
		Node: api.NodeStats{
			NodeName: n.Name, CPU: node.CPU, Memory: node.Memory, Swap: node.Swap, StartTime: node.StartTime,
			SystemContainers: systemContainers(n, s, d != nil),
		},
		Pods: make([]api.PodStats, 0, len(s.Pods)),
	}
	if d != nil {
		out.Node.IO, out.Node.Network = pressureOfIO(s.Node), networkStats(s.Node)
		out.Node.Fs = fsStats(d.Root)
		out.Node.Runtime = runtimeStats(d)
		out.Node.Rlimit = &api.RlimitStats{Time: metav1.NewTime(d.At), MaxPID: &d.MaxPIDs, NumOfRunningProcesses: &d.ProcessCount}
	}
	for i := range s.Pods {
		out.Pods = append(out.Pods, podStats(&s.Pods[i], d))
	}
	return out
}

// systemContainers returns the system containers of a summary: podd, the container runtime, other
// processes of the host, and all pods. withIO adds the I/O pressure.
func systemContainers(n NodeInfo, s *Sample, withIO bool) []api.ContainerStats {
	var containers []api.ContainerStats
	add := func(name string, c *Cgroup, startedAt time.Time) {
		if c == nil {
			return
		}
		stats := toContainerStats(name, c)
		if withIO {
			stats.IO = pressureOfIO(c)
		}
		if !startedAt.IsZero() {
			stats.StartTime = metav1.NewTime(startedAt)
		}
		containers = append(containers, stats)
	}
	add(api.SystemContainerKubelet, s.OwnCgroup, n.PoddStarted)
	add(api.SystemContainerRuntime, s.RuntimeCgroup, time.Time{})
	add(api.SystemContainerMisc, s.SystemCgroup, time.Time{})
	add(api.SystemContainerPods, s.AllPodsCgroup, time.Time{})
	return containers
}

func runtimeStats(d *Disk) *api.RuntimeStats {
	r := &api.RuntimeStats{}
	if d.Images != nil {
		r.ImageFs = fsStats(*d.Images)
		r.ContainerFs = fsStats(*cmp.Or(d.Layers, d.Images))
	}
	return r
}

func fsStats(f Filesystem) *api.FsStats {
	s := &api.FsStats{Time: metav1.NewTime(f.At), UsedBytes: f.UsedBytes, InodesUsed: f.InodesUsed}
	if f.Space != nil {
		s.AvailableBytes, s.CapacityBytes = &f.AvailableBytes, &f.CapacityBytes
		s.Inodes, s.InodesFree = &f.Inodes, &f.InodesFree
	}
	return s
}
