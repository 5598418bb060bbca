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

// sample reads all cgroups once. It omits cgroups that cannot be read, for example because they
// were removed. It returns an error only if the root cgroup cannot be read.
func (h *hierarchy) sample(ctx context.Context, o Options, m *model.MachineInfo) (*Sample, error) {
	node, err := h.readNode(m)
	if err != nil {
		return nil, fmt.Errorf("reading the resource usage of the node: %w", err)
	}
	s := &Sample{At: time.Now(), Node: h.toCgroup(node, m)}
	if o.AllPodsCgroups != nil {
		s.AllPodsCgroup = h.readGroup(h.firstExisting(o.AllPodsCgroups()), m)
	}
	if o.OwnCgroup != "/" {
		s.OwnCgroup = h.readGroup(o.OwnCgroup, m)
	}
	s.RuntimeCgroup, s.SystemCgroup = h.readGroup(o.RuntimeCgroup, m), h.readGroup(o.SystemCgroup, m)
	for _, name := range o.QoSClassCgroups {
		if c := h.readGroup(name, m); c != nil && h.exists(name) {
			s.QoSClassCgroups = append(s.QoSClassCgroups, c)
		}
	}
	pods := o.Pods()
	var cgroupsOutside map[string]string
	if o.SearchContainers {
		cgroupsOutside = h.searchContainers(pods)
	}
	for _, p := range pods {
		s.Pods = append(s.Pods, h.readPod(p, cgroupsOutside, m))
	}
	s.addRuntimeUsage(ctx, o)
	return s, nil
}

// readGroup reads a cgroup that does not belong to a container. It returns nil if the cgroup
// does not exist.
func (h *hierarchy) readGroup(name string, m *model.MachineInfo) *Cgroup {
	return h.readCgroup(name, 0, m)
}

// readCgroup reads the cgroup with this name, or returns nil if it cannot be read.
func (h *hierarchy) readCgroup(name string, pid int, m *model.MachineInfo) *Cgroup {
	if name == "" || !h.exists(name) {
		return nil
	}
	info, err := h.read(name, pid)
	if err != nil {
		return nil
	}
	return h.toCgroup(info, m)
}

func (h *hierarchy) toCgroup(info *model.ContainerInfo, m *model.MachineInfo) *Cgroup {
	s := info.Stats[0]
	nameDevices(m, s)
	if s.Network != nil {
		for i := range s.Network.Interfaces {
			s.Network.Interfaces[i].Name = toValidUTF8(s.Network.Interfaces[i].Name)
		}
	}
	for i := range s.Filesystem {
		s.Filesystem[i].Device = toValidUTF8(s.Filesystem[i].Device)
	}
	_, isVersion2 := h.mounts[""]
	return &Cgroup{Info: info, HasPressure: isVersion2}
}

// toValidUTF8 returns a name from the kernel as valid UTF-8. The kernel accepts any bytes as
// the name of a network interface, also from containers. A metric label that is not UTF-8
// causes a panic.
func toValidUTF8(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.Trim(strconv.QuoteToASCII(name), `"`)
}

// readPod reads the cgroups of a pod, its sandbox and its containers. cgroupsOutside contains the
// cgroups of containers and sandboxes whose pods have no cgroup, by CRI ID.
func (h *hierarchy) readPod(p Pod, cgroupsOutside map[string]string, m *model.MachineInfo) PodSample {
	s := PodSample{Pod: p}
	name, cgroups := h.firstExisting(p.Cgroups), cgroupsOutside
	if name != "" {
		cgroups = h.children(name, p.criIDs())
	}
	pid := h.networkPID(p, cgroups)
	if cgroups[p.SandboxID] != "" {
		s.Sandbox, pid = h.readCgroup(cgroups[p.SandboxID], pid, m), 0
	}
	s.Cgroup = h.readCgroup(name, pid, m) // a sandbox of CRI-O may have no cgroup; in that case the network is read with the pod's cgroup
	containerHierarchy := h.withoutNetwork()
	for _, c := range p.Containers {
		s.Containers = append(s.Containers, ContainerSample{c, containerHierarchy.readCgroup(cgroups[c.ID], containerHierarchy.limitsPID(cgroups[c.ID]), m)})
	}
	return s
}

// withoutNetwork returns a copy of h that does not read the network. It is used for cgroups whose
// network is also the network of another cgroup.
func (h *hierarchy) withoutNetwork() *hierarchy {
	metrics := maps.Clone(h.metrics)
	delete(metrics, container.NetworkUsageMetrics)
	return &hierarchy{mounts: h.mounts, machine: h.machine, metrics: metrics}
}

// limitsPID returns the process from which the resource limits (ulimits) of a cgroup are
// read. It returns 0 if the metrics of h do not include them or the cgroup has no process.
func (h *hierarchy) limitsPID(name string) int {
	if name == "" || !h.metrics.Has(container.ProcessMetrics) {
		return 0
	}
	return h.firstPID(name)
}

// networkPID returns a process in the network of a pod. It is a process of the sandbox or,
// if the sandbox has none, of a container. It returns 0 if none is running.
func (h *hierarchy) networkPID(p Pod, cgroups map[string]string) int {
	for _, id := range p.criIDs() {
		if cgroups[id] == "" {
			continue
		}
		if pid := h.firstPID(cgroups[id]); pid > 0 {
			return pid
		}
	}
	return 0
}

// criIDs returns the CRI IDs of a pod's sandbox and running containers, the sandbox first.
func (p *Pod) criIDs() []string {
	ids := []string{p.SandboxID}
	for i := range p.Containers {
		ids = append(ids, p.Containers[i].ID)
	}
	return ids
}
