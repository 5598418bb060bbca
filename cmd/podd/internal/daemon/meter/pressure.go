package meter

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/eviction/pressure"
	"podd/runtime/stats"
	"podd/server"
)

// PodUsage implements eviction.UsageReader. It measures only the resource. For memory and processes
// it reads only cgroups, because pods must be evicted even if the runtime does not respond.
func (m *Meter) PodUsage(ctx context.Context, resource v1.ResourceName) (map[types.UID]*pressure.Usage, error) {
	switch resource {
	case v1.ResourceMemory:
		s, err := m.sampler.ReadMemory(ctx)
		if err != nil {
			return nil, err
		}
		return processUsage(s), nil
	case pressure.ResourcePIDs:
		s, err := m.sampler.ReadProcesses(ctx)
		if err != nil {
			return nil, err
		}
		return processUsage(s), nil
	}
	d, err := m.sampler.MeasureDisksWithin(ctx)
	if err != nil {
		return nil, err
	}
	return diskUsage(d, m.state.View()), nil
}

// processUsage returns the memory and the number of processes of the pods in a sample.
func processUsage(s *stats.Sample) map[types.UID]*pressure.Usage {
	usages := map[types.UID]*pressure.Usage{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Cgroup == nil && len(p.Containers) == 0 {
			continue // the usage of the pod is unknown
		}
		u := &pressure.Usage{}
		for _, c := range p.Containers {
			if c.Cgroup == nil {
				continue
			}
			memory := int64(c.Stats().Memory.WorkingSet)
			u.MemoryBytes += memory
			u.Containers = append(u.Containers, pressure.ContainerUsage{Name: c.Name, MemoryBytes: memory})
			if n := c.Stats().Processes; n != nil {
				u.Processes += int64(n.ProcessCount)
			}
		}
		if p.Cgroup != nil { // also includes the sandbox and volumes in memory
			u.MemoryBytes = int64(p.Cgroup.Stats().Memory.WorkingSet)
		}
		usages[p.UID] = u
	}
	return usages
}

// diskUsage returns the disk usage of the pods in v, and omits pods that could not be measured. It
// includes exited containers, because the container that fills the disk often exits when a write fails.
//
// If a pod is newer than the measurement, diskUsage returns zero usage for the pod. Pods with an
// unknown usage are evicted first, but a new pod is rarely the cause of the pressure.
func diskUsage(d *stats.Disk, v *server.View) map[types.UID]*pressure.Usage {
	usages := map[types.UID]*pressure.Usage{}
	for _, p := range v.Pods {
		if d.Unreached[p.Pod.UID] {
			continue
		}
		disk := d.Pods[p.Pod.UID] // zero if the pod is newer
		u := &pressure.Usage{}
		for _, v := range disk.Volumes {
			if v.Ephemeral {
				u.Volumes = add(u.Volumes, v.Filesystem)
			}
		}
		if disk.ManagedFiles != nil {
			u.Volumes = add(u.Volumes, *disk.ManagedFiles)
		}
		for _, layer := range disk.Layers {
			u.Layers = add(u.Layers, layer)
		}
		for _, logs := range disk.Logs {
			u.Logs = add(u.Logs, logs)
		}
		for status := range server.ContainerStatuses(p.Pod) {
			c := add(pressure.DiskUsage{}, disk.Logs[status.Name])
			for _, id := range containerIDs(status) {
				c = add(c, disk.Layers[id])
			}
			u.Containers = append(u.Containers, pressure.ContainerUsage{Name: status.Name, DiskBytes: c.Bytes})
		}
		usages[p.Pod.UID] = u
	}
	return usages
}

// containerIDs returns the IDs of the newest container with this status and of the last one that
// exited, each once.
func containerIDs(c *v1.ContainerStatus) (ids []string) {
	all := []string{c.ContainerID}
	for _, t := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if t != nil {
			all = append(all, t.ContainerID)
		}
	}
	for _, s := range all {
		if _, id, ok := strings.Cut(s, "://"); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// add returns d with the usage of f added. It treats an unknown usage as 0.
func add(d pressure.DiskUsage, f stats.Filesystem) pressure.DiskUsage {
	d.IsLowerBound = d.IsLowerBound || f.IsLowerBound
	if f.UsedBytes != nil {
		d.Bytes += int64(min(*f.UsedBytes, 1<<62))
	}
	if f.InodesUsed != nil {
		d.Inodes += int64(min(*f.InodesUsed, 1<<62))
	}
	return d
}
