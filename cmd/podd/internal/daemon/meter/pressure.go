package meter

import (
	"context"

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

// diskUsage returns the disk usage of the pods in v. It includes only running containers, and omits
// pods that could not be measured. If a pod is newer than the measurement, diskUsage returns zero
// usage for the pod. Pods with an unknown usage are evicted first, but a new pod is rarely the cause of
// the pressure.
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
		for status := range server.ContainerStatuses(p.Pod) {
			c, isRunning := sampledContainer(status)
			if !isRunning {
				continue
			}
			layer, logs := disk.Layers[c.ID], disk.Logs[c.Name]
			u.Layers, u.Logs = add(u.Layers, layer), add(u.Logs, logs)
			u.Containers = append(u.Containers, pressure.ContainerUsage{Name: c.Name, DiskBytes: add(add(pressure.DiskUsage{}, layer), logs).Bytes})
		}
		usages[p.Pod.UID] = u
	}
	return usages
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
