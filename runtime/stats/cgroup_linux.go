package stats

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/common"
	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/google/cadvisor/lib/model"
	"github.com/opencontainers/cgroups/fscommon"
)

// basic is what is read of processor and memory alone, whole what the kubelet
// has cAdvisor read but for the load, of which neither measures anything.
var (
	basic = container.MetricSet{container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}}
	whole = container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {},
		container.DiskIOMetrics: {}, container.DiskUsageMetrics: {}, container.NetworkUsageMetrics: {},
		container.ProcessMetrics: {}, container.OOMMetrics: {},
	}
)

// hierarchy reads cgroups by their path below the mounts of controllers, by
// controller; under version 2 there is one, "".
type hierarchy struct {
	mounts  map[string]string
	machine model.MachineInfoFactory
	metrics container.MetricSet
}

func newHierarchy(m model.MachineInfoFactory, metrics container.MetricSet) (*hierarchy, error) {
	mounts, err := libcontainer.GetCgroupSubsystems(metrics)
	return &hierarchy{mounts: mounts, machine: m, metrics: metrics}, err
}

// dir is where a cgroup can be listed; every controller has the same ones.
func (h *hierarchy) dir(name string) string {
	for _, controller := range []string{"", "memory", "cpu"} {
		if at, ok := h.mounts[controller]; ok {
			return filepath.Join(at, name)
		}
	}
	return ""
}

func (h *hierarchy) exists(name string) bool {
	info, err := os.Lstat(h.dir(name))
	return err == nil && info.IsDir()
}

// first is the first of names that exists; "" for none.
func (h *hierarchy) first(names []string) string {
	for _, name := range names {
		if h.exists(name) {
			return name
		}
	}
	return ""
}

// children are the cgroups right below one, by the CRI ids among ids that their
// names end in: runtimes put words before and after, cri-containerd-<id>.scope.
func (h *hierarchy) children(name string, ids []string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(h.dir(name))
	if err != nil {
		return found
	}
	for _, e := range entries {
		base := strings.TrimSuffix(e.Name(), ".scope")
		for _, id := range ids {
			if id != "" && e.IsDir() && strings.HasSuffix(base, id) {
				found[id] = path.Join(name, e.Name())
			}
		}
	}
	return found
}

// firstProcess is a process in a cgroup; 0: none.
func (h *hierarchy) firstProcess(name string) int {
	text, err := os.ReadFile(filepath.Join(h.dir(name), "cgroup.procs"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return max(pid, 0)
}

// read reads a cgroup, and the network of a process where one is given.
func (h *hierarchy) read(name string, pid int) (*model.ContainerInfo, error) {
	paths := common.MakeCgroupPaths(h.mounts, name)
	if name == "/" {
		delete(paths, "pids") // it has no pids.current
	}
	manager, err := libcontainer.NewCgroupManager(name, paths)
	if err != nil {
		return nil, err
	}
	network := pid > 0 && h.metrics.Has(container.NetworkUsageMetrics)
	stats, err := libcontainer.NewHandler(manager, "/", pid, h.metrics).GetStats()
	if err != nil {
		return nil, err
	}
	spec, err := common.GetSpec(paths, h.machine, network, false)
	if err != nil {
		return nil, err
	}
	if h.metrics.Has(container.OOMMetrics) {
		stats.OOMEvents = outOfMemory(paths)
	}
	return &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Spec:               spec, Stats: []*model.ContainerStats{stats},
	}, nil
}

// outOfMemory is how often the kernel ended a process of a cgroup for want of
// memory, as the kernel counts.
func outOfMemory(paths map[string]string) uint64 {
	dir, file := paths["memory"], "memory.oom_control"
	if dir == "" {
		dir, file = paths[""], "memory.events"
	}
	n, err := fscommon.GetValueByKey(dir, file, "oom_kill")
	if err != nil {
		return 0
	}
	return n
}
