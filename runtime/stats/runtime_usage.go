package stats

import (
	"context"
	"path"

	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// addRuntimeUsage sets the usage of containers without a cgroup to the usage that the runtime
// reports. It skips containers that the runtime does not report.
func (s *Sample) addRuntimeUsage(ctx context.Context, o Options) {
	if o.RuntimeUsage == nil || !s.hasContainerWithoutCgroup() {
		return
	}
	usage, err := o.RuntimeUsage(ctx)
	if err != nil { // the sample of the other containers is valid
		s.lacksRuntimeUsage = true
		return
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		for j := range p.Containers {
			c := &p.Containers[j]
			if u, ok := usage[c.ID]; ok && c.Cgroup == nil {
				c.Cgroup = cgroupFromRuntime(p.cgroupName(c.ID), u)
			}
		}
	}
}

// hasContainerWithoutCgroup reports whether a container of the sample has no cgroup.
func (s *Sample) hasContainerWithoutCgroup() bool {
	for i := range s.Pods {
		for _, c := range s.Pods[i].Containers {
			if c.Cgroup == nil {
				return true
			}
		}
	}
	return false
}

// cgroupName returns the name that the cgroup of a container or sandbox would have. id is
// its CRI ID.
func (p *PodSample) cgroupName(id string) string {
	if p.Cgroup == nil {
		return "/" + id
	}
	return path.Join(p.Cgroup.Info.Name, id)
}

// cgroupFromRuntime converts the usage that the runtime reports to a Cgroup with this name. It
// returns nil if the runtime does not report CPU and memory.
func cgroupFromRuntime(name string, u runtime.Usage) *Cgroup {
	if u.At.IsZero() {
		return nil
	}
	return &Cgroup{Info: &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Spec:               model.ContainerSpec{HasCpu: true, HasMemory: true, Memory: model.MemorySpec{Limit: maxMemoryLimit + 1, SwapLimit: maxMemoryLimit + 1}},
		Stats: []*model.ContainerStats{{
			Timestamp: u.At,
			Cpu:       &model.CpuStats{Usage: model.CpuUsage{Total: u.CPUNanoseconds}},
			Memory:    &model.MemoryStats{Usage: u.MemoryBytes, WorkingSet: u.WorkingSetBytes, RSS: u.RSSBytes},
		}},
	}}
}
