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

// basic contains the metrics for CPU and memory. whole contains those that a kubelet reads
// with cAdvisor, except the load, which neither measures.
var (
	basic = container.MetricSet{container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}}
	whole = container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {},
		container.DiskIOMetrics: {}, container.DiskUsageMetrics: {}, container.NetworkUsageMetrics: {},
		container.ProcessMetrics: {}, container.OOMMetrics: {},
	}
)

// hierarchy reads cgroups by their path below the mounts of controllers. The keys of mounts
// are controllers; for version 2 the only key is "".
type hierarchy struct {
	mounts  map[string]string
	machine model.MachineInfoFactory
	metrics container.MetricSet
}

func newHierarchy(m model.MachineInfoFactory, metrics container.MetricSet) (*hierarchy, error) {
	mounts, err := libcontainer.GetCgroupSubsystems(metrics)
	return &hierarchy{mounts: mounts, machine: m, metrics: metrics}, err
}

// dir returns a directory in which a cgroup's children can be listed. They are the same for
// every controller.
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

// first returns the first of names that exists; "" if none does.
func (h *hierarchy) first(names []string) string {
	for _, name := range names {
		if h.exists(name) {
			return name
		}
	}
	return ""
}

// monitorPrefix begins the names of the cgroups in which CRI-O runs conmon, the monitor of a
// container. Such a name ends with the container's ID, too.
const monitorPrefix = "crio-conmon-"

// children returns the direct children of a cgroup by the CRI ID in ids that their names
// end with. Runtimes add prefixes and suffixes, as in cri-containerd-<id>.scope.
func (h *hierarchy) children(name string, ids []string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(h.dir(name))
	if err != nil {
		return found
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), monitorPrefix) {
			continue
		}
		base := strings.TrimSuffix(e.Name(), ".scope")
		for _, id := range ids {
			if id != "" && strings.HasSuffix(base, id) {
				found[id] = path.Join(name, e.Name())
			}
		}
	}
	return found
}

// firstProcess returns a process in a cgroup; 0 if there is none.
func (h *hierarchy) firstProcess(name string) int {
	text, err := os.ReadFile(filepath.Join(h.dir(name), "cgroup.procs"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return max(pid, 0)
}

// read reads a cgroup, and the network of the process pid unless it is 0.
func (h *hierarchy) read(name string, pid int) (*model.ContainerInfo, error) {
	paths := common.MakeCgroupPaths(h.mounts, name)
	if name == "/" {
		delete(paths, "pids") // the root cgroup has no pids.current
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

// outOfMemory returns the kernel's counter of processes in a cgroup that were killed
// because of a lack of memory.
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
