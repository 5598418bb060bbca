package main

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/reconcile/cgroup"
	"podd/runtime"
	"podd/runtime/stats"
	"podd/server"
)

// meter tells the faces what node and pods use, of the pods that they show.
type meter struct {
	node    stats.Node
	sampler *stats.Sampler
}

var _ server.Meter = (*meter)(nil)

// newMeter reads nothing before somebody asks.
func (d *podd) newMeter() *meter {
	// cAdvisor's library tells klog what it could not read, at every look anew, and
	// nobody can act on it.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	all, classes := cgroup.Groups(d.cfg.CgroupRoot)
	disks := &diskMeter{cfg: d.cfg, node: d.render, runtime: d.client, view: d.view.latest, csi: d.csi}
	return &meter{
		node: stats.Node{Name: d.cfg.NodeName, Began: d.pulse.began},
		sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod {
				d.trimmer.touch() // a scrape's text takes memory for a moment
				return sampledPods(d.view.latest.View(), d.cfg.CgroupRoot)
			},
			Runtime: func(ctx context.Context) (map[string]runtime.Usage, error) {
				return d.client.ContainerUsages(ctx, d.instance.ID)
			},
			AllPods: all, Classes: classes, Own: stats.OwnCgroup(), Disk: disks.measure,
		}),
	}
}

// sampledPods are the pods that have a sandbox, with the containers that run.
func sampledPods(v *server.View, root string) []stats.Pod {
	var all []stats.Pod
	for _, p := range v.Pods {
		if p.Sandbox == "" {
			continue
		}
		s := stats.Pod{
			Key: types.NamespacedName(p.Key()), UID: p.Pod.UID,
			Cgroups: cgroup.Places(root, p.Pod.UID), Sandbox: p.Sandbox,
		}
		if t := p.Pod.Status.StartTime; t != nil {
			s.Started = t.Time
		}
		for c := range server.Statuses(p.Pod) {
			if r, ok := sampledContainer(c); ok {
				s.Containers = append(s.Containers, r)
			}
		}
		all = append(all, s)
	}
	return all
}

func sampledContainer(c *v1.ContainerStatus) (stats.Container, bool) {
	_, id, ok := strings.Cut(c.ContainerID, "://")
	if c.State.Running == nil || !ok {
		return stats.Container{}, false
	}
	return stats.Container{ID: id, Name: c.Name, Image: c.Image, Started: c.State.Running.StartedAt.Time}, true
}

// Summary implements server.Meter.
func (m *meter) Summary(ctx context.Context, cpuAndMemory bool) (*api.Summary, error) {
	if cpuAndMemory {
		s, err := m.sampler.Basic(ctx)
		if err != nil {
			return nil, err
		}
		return stats.Summarize(m.node, s, nil), nil
	}
	d, err := m.sampler.Disk(ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.sampler.Whole(ctx)
	if err != nil {
		return nil, err
	}
	return stats.Summarize(m.node, s, d), nil
}

// Containers implements server.Meter.
func (m *meter) Containers(ctx context.Context) (map[string]*model.ContainerInfo, error) {
	s, err := m.sampler.Whole(ctx)
	if err != nil {
		return nil, err
	}
	return s.Containers(), nil
}

// Machine implements server.Meter.
func (m *meter) Machine(ctx context.Context) (*model.MachineInfo, error) {
	return m.sampler.Machine(ctx)
}

// Usage implements server.Meter.
func (m *meter) Usage(ctx context.Context) (*server.Usage, error) {
	s, err := m.sampler.Basic(ctx)
	if err != nil {
		return nil, err
	}
	out := &server.Usage{At: s.At, Node: amountsOf(s.Node), Pods: make(map[server.Key]server.PodUsage, len(s.Pods))}
	for i := range s.Pods {
		p := &s.Pods[i]
		u := server.PodUsage{Amounts: amountsOf(cmp.Or(p.Cgroup, p.Sandbox)), Containers: map[string]server.Amounts{}}
		for _, c := range p.Containers {
			if c.Cgroup != nil {
				u.Containers[c.Name] = amountsOf(c.Cgroup)
			}
		}
		out.Pods[server.Key(p.Key)] = u
	}
	return out, nil
}

func amountsOf(c *stats.Cgroup) server.Amounts {
	if c == nil {
		return server.Amounts{}
	}
	s := c.Stats()
	return server.Amounts{NanoCores: c.NanoCores, CoreNanoSeconds: s.Cpu.Usage.Total, WorkingSet: s.Memory.WorkingSet}
}
