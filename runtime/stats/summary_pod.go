package stats

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// podStats returns the summary of one pod. If d is nil, the summary contains only CPU and
// memory.
func podStats(p *PodSample, d *Disk) api.PodStats {
	out := api.PodStats{
		PodRef:     api.PodReference{Namespace: p.Key.Namespace, Name: p.Key.Name, UID: string(p.UID)},
		StartTime:  metav1.NewTime(p.Started),
		Containers: []api.ContainerStats{},
	}
	if p.Sandbox != nil {
		out.StartTime = metav1.NewTime(p.Sandbox.Info.Spec.CreationTime)
	}
	if p.Cgroup != nil {
		c := toContainerStats("", p.Cgroup)
		out.CPU, out.Memory, out.Swap = c.CPU, c.Memory, c.Swap
	}
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Cgroup != nil {
			sum := toContainerStats(c.Name, c.Cgroup)
			if sum.StartTime.IsZero() {
				sum.StartTime = metav1.NewTime(c.Started)
			}
			out.Containers = append(out.Containers, sum)
		}
	}
	if p.Cgroup == nil {
		addContainerStats(&out)
	}
	if d != nil {
		p.addNetworkAndDisks(&out, d)
	}
	return out
}

// addContainerStats sets the CPU and memory of a pod without a cgroup to the sums of its containers, as
// the kubelet does.
func addContainerStats(out *api.PodStats) {
	sum := func(total **uint64, n *uint64) {
		if n == nil {
			return
		}
		if *total == nil {
			*total = new(uint64(0))
		}
		**total += *n
	}
	for i := range out.Containers {
		if c := out.Containers[i].CPU; c != nil {
			out.CPU = cmp.Or(out.CPU, &api.CPUStats{Time: c.Time})
			sum(&out.CPU.UsageNanoCores, c.UsageNanoCores)
			sum(&out.CPU.UsageCoreNanoSeconds, c.UsageCoreNanoSeconds)
		}
		if m := out.Containers[i].Memory; m != nil {
			out.Memory = cmp.Or(out.Memory, &api.MemoryStats{Time: m.Time})
			sum(&out.Memory.UsageBytes, m.UsageBytes)
			sum(&out.Memory.WorkingSetBytes, m.WorkingSetBytes)
			sum(&out.Memory.RSSBytes, m.RSSBytes)
			sum(&out.Memory.PageFaults, m.PageFaults)
			sum(&out.Memory.MajorPageFaults, m.MajorPageFaults)
		}
	}
}

// addNetworkAndDisks adds everything except CPU and memory to the summary of a pod.
func (p *PodSample) addNetworkAndDisks(out *api.PodStats, d *Disk) {
	disk := d.Pods[p.UID]
	out.IO = pressureOfIO(p.Cgroup)
	out.Network = networkStats(cmp.Or(p.Sandbox, p.Cgroup))
	ephemeralStorage := Filesystem{Space: d.Root.Space, At: d.Root.At}
	var processes uint64
	at := 0
	for _, c := range p.Containers {
		if c.Cgroup == nil {
			continue
		}
		s := &out.Containers[at]
		at++
		s.IO = pressureOfIO(c.Cgroup)
		layer, logs := disk.Layers[c.ID], disk.Logs[c.Name]
		s.Rootfs, s.Logs = fsStats(layer), fsStats(logs)
		ephemeralStorage = ephemeralStorage.plus(layer, logs)
		if n := c.Stats().Processes; n != nil {
			processes += n.ProcessCount
		}
	}
	for _, v := range disk.Volumes {
		out.VolumeStats = append(out.VolumeStats, volumeStats(out.PodRef.Namespace, v))
		if v.Ephemeral {
			ephemeralStorage = ephemeralStorage.plus(v.Filesystem)
		}
	}
	if disk.ManagedFiles != nil {
		ephemeralStorage = ephemeralStorage.plus(*disk.ManagedFiles)
	}
	out.EphemeralStorage = fsStats(ephemeralStorage)
	out.ProcessStats = &api.ProcessStats{ProcessCount: &processes}
}

func volumeStats(namespace string, v Volume) api.VolumeStats {
	s := api.VolumeStats{Name: v.Name, FsStats: *fsStats(v.Filesystem)}
	if v.Claim != "" {
		s.PVCRef = &api.PVCReference{Namespace: namespace, Name: v.Claim}
	}
	return s
}
