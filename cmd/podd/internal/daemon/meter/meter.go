// Package meter measures the resource usage of the node and its pods.
package meter

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/reconcile/cgroup"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/stats"
	"podd/server"
)

// Options are the options of a Meter. CSI, HugePageBytes and the names of cgroups are optional.
type Options struct {
	Node render.Node
	// CgroupDriver returns the cgroup driver in effect, "cgroupfs" or "systemd".
	CgroupDriver func() string
	StartTime    time.Time // when podd started
	RootDir      string
	Runtime      *cri.Client
	State        server.Viewer
	CSI          *csi.Drivers // nil without CSI
	// RuntimeCgroup and SystemCgroup are the cgroups of the container runtime and of other processes of
	// the host; "" if they are unknown.
	RuntimeCgroup, SystemCgroup string
	// HugePageBytes returns the total size of the node's huge pages. If it is nil, huge pages count as
	// available memory.
	HugePageBytes func() int64
	// OnSample is called before the cgroups of the pods are read.
	OnSample func()
	// OnVolumeMeasured is called after the usage of a volume was measured. source is
	// volume.VolumeUsage.Source.
	OnVolumeMeasured func(source string, took time.Duration)
}

// A Meter measures the node and the pods in the View. It implements server.Meter.
type Meter struct {
	node          stats.NodeInfo // without HugePageBytes
	hugePageBytes func() int64   // Options.HugePageBytes
	state         server.Viewer
	sampler       *stats.Sampler
}

var _ server.Meter = (*Meter)(nil)

// New returns a Meter. It measures only when one of its methods is called.
func New(o Options) *Meter {
	// cAdvisor's library uses klog to report each value that it cannot read. Discard these
	// messages, because users cannot act on them.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	podCgroups := func() []string { return cgroup.AllPodsPaths(o.Node.CgroupRoot, o.CgroupDriver()) }
	_, classes := cgroup.QOSPaths(o.Node.CgroupRoot)
	if o.Node.WithoutPodCgroups { // podd has no such cgroups, so cgroups with these names belong to another agent
		podCgroups, classes = nil, nil
	}
	disks := &diskMeter{rootDir: o.RootDir, node: o.Node, runtime: o.Runtime, state: o.State, csi: o.CSI, onVolumeMeasured: o.OnVolumeMeasured}
	return &Meter{
		node: stats.NodeInfo{Name: o.Node.Name, PoddStarted: o.StartTime}, hugePageBytes: o.HugePageBytes, state: o.State,
		sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod {
				o.OnSample()
				return sampledPods(o.State.View(), o.Node.CgroupRoot)
			},
			RuntimeUsage: func(ctx context.Context) (map[string]runtime.Usage, error) {
				return o.Runtime.ContainerUsages(ctx, o.Node.OwnInstances())
			},
			AllPodsCgroups: podCgroups, QoSClassCgroups: classes, SearchContainers: o.Node.WithoutPodCgroups, OwnCgroup: stats.OwnCgroup(),
			RuntimeCgroup: o.RuntimeCgroup, SystemCgroup: o.SystemCgroup, MeasureDisk: disks.measure,
		}),
	}
}

// Close stops measurements in progress and waits for them.
func (m *Meter) Close() { m.sampler.Close() }

// sampledPods returns the pods that have a sandbox, with their running containers. root is
// the parent cgroup of kubepods.
func sampledPods(v *server.View, root string) []stats.Pod {
	var pods []stats.Pod
	for _, p := range v.Pods {
		if p.SandboxID == "" {
			continue
		}
		s := stats.Pod{
			Key: types.NamespacedName(p.Key()), UID: p.Pod.UID,
			Cgroups: cgroup.PodPaths(root, p.Pod.UID), SandboxID: p.SandboxID,
		}
		if t := p.Pod.Status.StartTime; t != nil {
			s.Started = t.Time
		}
		for c := range server.ContainerStatuses(p.Pod) {
			if r, ok := sampledContainer(c); ok {
				s.Containers = append(s.Containers, r)
			}
		}
		pods = append(pods, s)
	}
	return pods
}

// sampledContainer returns the container to sample. isRunning is false if the container is not
// running.
func sampledContainer(c *v1.ContainerStatus) (_ stats.Container, isRunning bool) {
	_, id, ok := strings.Cut(c.ContainerID, "://")
	if c.State.Running == nil || !ok {
		return stats.Container{}, false
	}
	return stats.Container{ID: id, Name: c.Name, Image: c.Image, Started: c.State.Running.StartedAt.Time}, true
}

// Summary implements server.Meter.
func (m *Meter) Summary(ctx context.Context, cpuAndMemory bool) (*api.Summary, error) {
	node := m.node
	if m.hugePageBytes != nil {
		node.HugePageBytes = uint64(m.hugePageBytes())
	}
	if cpuAndMemory {
		s, err := m.sampler.SampleBasic(ctx)
		if err != nil {
			return nil, err
		}
		return stats.Summarize(node, s, nil), nil
	}
	d, err := m.sampler.MeasureDisks(ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.sampler.SampleAll(ctx)
	if err != nil {
		return nil, err
	}
	return stats.Summarize(node, s, d), nil
}

// Containers implements server.Meter.
func (m *Meter) Containers(ctx context.Context) (map[string]*model.ContainerInfo, error) {
	s, err := m.sampler.SampleAll(ctx)
	if err != nil {
		return nil, err
	}
	return s.Containers(), nil
}

// Machine implements server.Meter.
func (m *Meter) Machine(ctx context.Context) (*model.MachineInfo, error) {
	return m.sampler.MachineInfo(ctx)
}

// Usage implements server.Meter.
func (m *Meter) Usage(ctx context.Context) (*server.Usage, error) {
	s, err := m.sampler.SampleBasic(ctx)
	if err != nil {
		return nil, err
	}
	out := &server.Usage{At: s.At, Node: usageAmounts(s.Node), Pods: make(map[server.Key]server.PodUsage, len(s.Pods))}
	for i := range s.Pods {
		p := &s.Pods[i]
		u := server.PodUsage{ResourceUsage: usageAmounts(cmp.Or(p.Cgroup, p.Sandbox)), Containers: map[string]server.ResourceUsage{}}
		for _, c := range p.Containers {
			if c.Cgroup != nil {
				u.Containers[c.Name] = usageAmounts(c.Cgroup)
			}
		}
		out.Pods[server.Key(p.Key)] = u
	}
	return out, nil
}

// usageAmounts converts the usage of a cgroup.
func usageAmounts(c *stats.Cgroup) server.ResourceUsage {
	if c == nil {
		return server.ResourceUsage{}
	}
	s := c.Stats()
	return server.ResourceUsage{NanoCores: c.NanoCores, CoreNanoSeconds: s.Cpu.Usage.Total, WorkingSetBytes: s.Memory.WorkingSet}
}
