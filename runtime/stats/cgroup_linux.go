package stats

import (
	"maps"
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

// basicMetrics contains the metrics for CPU and memory. processMetrics also contains the number of
// processes. allMetrics contains all metrics that a kubelet reads with cAdvisor. None of these sets
// contains the CPU load, as in the kubelet.
var (
	basicMetrics   = container.MetricSet{container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}}
	processMetrics = container.MetricSet{container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.ProcessMetrics: {}}
	allMetrics     = container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {},
		container.DiskIOMetrics: {}, container.DiskUsageMetrics: {}, container.NetworkUsageMetrics: {},
		container.ProcessMetrics: {}, container.OOMMetrics: {},
	}
)

// A hierarchy reads cgroups by their path below the mount of a controller. mounts contains
// the mounts by controller. For cgroup version 2 it has one entry, with the key "".
type hierarchy struct {
	mounts  map[string]string
	machine model.MachineInfoFactory
	metrics container.MetricSet
}

func newHierarchy(m model.MachineInfoFactory, metrics container.MetricSet) (*hierarchy, error) {
	mounts, err := libcontainer.GetCgroupSubsystems(metrics)
	return &hierarchy{mounts: mounts, machine: m, metrics: metrics}, err
}

// childrenDir returns a directory that contains the children of a cgroup. All controllers have the
// same children.
func (h *hierarchy) childrenDir(name string) string {
	for _, controller := range []string{"", "memory", "cpu"} {
		if mountPoint, ok := h.mounts[controller]; ok {
			return filepath.Join(mountPoint, name)
		}
	}
	return ""
}

func (h *hierarchy) exists(name string) bool {
	info, err := os.Lstat(h.childrenDir(name))
	return err == nil && info.IsDir()
}

// firstExisting returns the first name in names whose cgroup exists, or "" if none exists.
func (h *hierarchy) firstExisting(names []string) string {
	for _, name := range names {
		if h.exists(name) {
			return name
		}
	}
	return ""
}

// monitorPrefix is the prefix of the cgroups in which CRI-O runs conmon, the monitor of a
// container. Their names also end with the container's ID.
const monitorPrefix = "crio-conmon-"

// children returns the names of the direct children of a cgroup, by the CRI ID with which
// the name ends. Only the IDs in ids are included. Runtimes add prefixes and suffixes, as
// in cri-containerd-<id>.scope.
func (h *hierarchy) children(name string, ids []string) map[string]string {
	names := map[string]string{}
	entries, err := os.ReadDir(h.childrenDir(name))
	if err != nil {
		return names
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), monitorPrefix) {
			continue
		}
		base := strings.TrimSuffix(e.Name(), ".scope")
		for _, id := range ids {
			if id != "" && strings.HasSuffix(base, id) {
				names[id] = path.Join(name, e.Name())
			}
		}
	}
	return names
}

// searchContainers returns the names of the cgroups of sandboxes and containers by CRI ID. It searches
// the children of the root cgroup and the children of these.
func (h *hierarchy) searchContainers(pods []Pod) map[string]string {
	var ids []string
	for i := range pods {
		ids = append(ids, pods[i].criIDs()...)
	}
	names := h.children("/", ids)
	entries, err := os.ReadDir(h.childrenDir("/"))
	if err != nil {
		return names
	}
	for _, e := range entries {
		if e.IsDir() {
			maps.Copy(names, h.children("/"+e.Name(), ids))
		}
	}
	return names
}

// firstPID returns the pid of a process in a cgroup, or 0 if the cgroup has none.
func (h *hierarchy) firstPID(name string) int {
	text, err := os.ReadFile(filepath.Join(h.childrenDir(name), "cgroup.procs"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return max(pid, 0)
}

// read reads the statistics of a cgroup. It also reads the network of the process pid,
// unless pid is 0.
func (h *hierarchy) read(name string, pid int) (*model.ContainerInfo, error) {
	paths := common.MakeCgroupPaths(h.mounts, name)
	if name == "/" {
		delete(paths, "pids") // the root cgroup has no file pids.current
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
		stats.OOMEvents = oomKills(paths)
	}
	return &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Spec:               spec, Stats: []*model.ContainerStats{stats},
	}, nil
}

// oomKills returns the kernel's counter of processes in a cgroup that were killed because
// memory was exhausted.
func oomKills(paths map[string]string) uint64 {
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
