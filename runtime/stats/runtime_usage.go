package stats

import (
	"context"
	"path"

	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// addRuntimeUsage adds the usage that the runtime reports for containers without a cgroup.
// Containers that the runtime does not report are omitted.
func (s *Sample) addRuntimeUsage(ctx context.Context, o Options) {
	if o.Runtime == nil || !s.lacks() {
		return
	}
	usage, err := o.Runtime(ctx)
	if err != nil {
		return // the other containers are sampled anyway
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		for j := range p.Containers {
			c := &p.Containers[j]
			if u, ok := usage[c.ID]; ok && c.Cgroup == nil {
				c.Cgroup = fromRuntime(p.name(c.ID), u)
			}
		}
	}
}

// lacks reports whether a container has no cgroup.
func (s *Sample) lacks() bool {
	for i := range s.Pods {
		for _, c := range s.Pods[i].Containers {
			if c.Cgroup == nil {
				return true
			}
		}
	}
	return false
}

// name returns the name that the cgroup of a container would have.
func (p *PodSample) name(id string) string {
	if p.Cgroup == nil {
		return "/" + id
	}
	return path.Join(p.Cgroup.Info.Name, id)
}

func fromRuntime(name string, u runtime.Usage) *Cgroup {
	if u.At.IsZero() {
		return nil
	}
	return &Cgroup{Info: &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Spec:               model.ContainerSpec{HasCpu: true, HasMemory: true, Memory: model.MemorySpec{Limit: unlimited + 1, SwapLimit: unlimited + 1}},
		Stats: []*model.ContainerStats{{
			Timestamp: u.At,
			Cpu:       &model.CpuStats{Usage: model.CpuUsage{Total: u.CPU}},
			Memory:    &model.MemoryStats{Usage: u.Memory, WorkingSet: u.WorkingSet, RSS: u.RSS},
		}},
	}}
}
