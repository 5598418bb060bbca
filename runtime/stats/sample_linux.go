package stats

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/model"
)

// sample reads everything once. It omits what disappears meanwhile; only the node itself
// must be readable.
func (h *hierarchy) sample(ctx context.Context, o Options, m *model.MachineInfo) (*Sample, error) {
	node, err := h.readNode(m)
	if err != nil {
		return nil, fmt.Errorf("reading the resource usage of the node: %w", err)
	}
	s := &Sample{At: time.Now(), Node: h.sampled(node, m)}
	s.AllPods = h.group(h.first(o.AllPods), m)
	if o.Own != "/" {
		s.Own = h.group(o.Own, m)
	}
	for _, name := range o.Classes {
		if c := h.group(name, m); c != nil && h.exists(name) {
			s.Classes = append(s.Classes, c)
		}
	}
	for _, p := range o.Pods() {
		s.Pods = append(s.Pods, h.pod(p, m))
	}
	s.addRuntimeUsage(ctx, o)
	return s, nil
}

// group reads a cgroup that does not belong to a container; nil if it does not exist.
func (h *hierarchy) group(name string, m *model.MachineInfo) *Cgroup { return h.one(name, 0, m) }

func (h *hierarchy) one(name string, pid int, m *model.MachineInfo) *Cgroup {
	if name == "" || !h.exists(name) {
		return nil
	}
	info, err := h.read(name, pid)
	if err != nil {
		return nil
	}
	return h.sampled(info, m)
}

func (h *hierarchy) sampled(info *model.ContainerInfo, m *model.MachineInfo) *Cgroup {
	s := info.Stats[0]
	nameDevices(m, s)
	if s.Network != nil {
		for i := range s.Network.Interfaces {
			s.Network.Interfaces[i].Name = readable(s.Network.Interfaces[i].Name)
		}
	}
	for i := range s.Filesystem {
		s.Filesystem[i].Device = readable(s.Filesystem[i].Device)
	}
	return &Cgroup{Info: info}
}

// readable returns a name from the kernel as UTF-8. The kernel accepts any bytes for the
// name of an interface, also from containers, and a metric label that is not UTF-8 causes a
// panic.
func readable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.Trim(strconv.QuoteToASCII(name), `"`)
}

func (h *hierarchy) pod(p Pod, m *model.MachineInfo) PodSample {
	s := PodSample{Pod: p}
	name := h.first(p.Cgroups)
	if name == "" {
		for _, c := range p.Containers {
			s.Containers = append(s.Containers, ContainerSample{Container: c})
		}
		return s
	}
	at := h.children(name, p.ids())
	pid := h.networkOf(p, at)
	if at[p.Sandbox] != "" {
		s.Sandbox, pid = h.one(at[p.Sandbox], pid, m), 0
	}
	s.Cgroup = h.one(name, pid, m) // CRI-O creates sandboxes without a process
	alone := h.withoutNetwork()
	for _, c := range p.Containers {
		s.Containers = append(s.Containers, ContainerSample{c, alone.one(at[c.ID], alone.limited(at[c.ID]), m)})
	}
	return s
}

// withoutNetwork returns h for cgroups that share their network with others.
func (h *hierarchy) withoutNetwork() *hierarchy {
	metrics := maps.Clone(h.metrics)
	delete(metrics, container.NetworkUsageMetrics)
	return &hierarchy{mounts: h.mounts, machine: h.machine, metrics: metrics}
}

// limited returns the process that the reported limits of a cgroup are read from; 0 if none
// are reported.
func (h *hierarchy) limited(name string) int {
	if name == "" || !h.metrics.Has(container.ProcessMetrics) {
		return 0
	}
	return h.firstProcess(name)
}

// networkOf returns a process in the network of a pod: the sandbox's, or a container's if
// the sandbox has none; 0 if none runs.
func (h *hierarchy) networkOf(p Pod, at map[string]string) int {
	for _, id := range p.ids() {
		if at[id] == "" {
			continue
		}
		if pid := h.firstProcess(at[id]); pid > 0 {
			return pid
		}
	}
	return 0
}

// ids returns the CRI IDs of what runs of a pod, the sandbox's first.
func (p *Pod) ids() []string {
	ids := []string{p.Sandbox}
	for i := range p.Containers {
		ids = append(ids, p.Containers[i].ID)
	}
	return ids
}
