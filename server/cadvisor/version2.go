package cadvisor

import (
	"context"
	"time"

	"github.com/google/cadvisor/lib/model"
)

// containerV2 is a cgroup in version 2 of the API.
type containerV2 struct {
	Spec  specV2     `json:"spec"`
	Stats []*statsV2 `json:"stats,omitempty"`
}

// specV2 contains the limits and labels of a cgroup.
type specV2 struct {
	model.ContainerSpec
	Aliases   []string `json:"aliases,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
}

// statsV2 is a sample of the usage of a cgroup.
type statsV2 struct {
	Timestamp  time.Time           `json:"timestamp"`
	Cpu        *model.CpuStats     `json:"cpu,omitempty"`
	CpuInst    *model.CpuInstStats `json:"cpu_inst,omitempty"`
	DiskIo     *model.DiskIoStats  `json:"diskio,omitempty"`
	Memory     *model.MemoryStats  `json:"memory,omitempty"`
	Network    *networkV2          `json:"network,omitempty"`
	Processes  *model.ProcessStats `json:"processes,omitempty"`
	Filesystem *filesystemV2       `json:"filesystem,omitempty"`
}

type networkV2 struct {
	Interfaces []model.InterfaceStats `json:"interfaces,omitempty"`
}

type filesystemV2 struct {
	TotalUsageBytes uint64 `json:"totalUsageBytes"`
	BaseUsageBytes  uint64 `json:"baseUsageBytes"`
	InodeUsage      uint64 `json:"containter_inode_usage"` // cAdvisor's spelling
}

// machineStats is a sample of the usage of the node. Its field filesystem replaces that of statsV2.
type machineStats struct {
	*statsV2
	Filesystem []machineFilesystem `json:"filesystem,omitempty"`
}

type machineFilesystem struct {
	Device     string  `json:"device"`
	Type       string  `json:"type"`
	Capacity   uint64  `json:"capacity"`
	Usage      uint64  `json:"usage"`
	Available  uint64  `json:"available"`
	InodesFree *uint64 `json:"inodes_free,omitempty"`
}

func queryMachineStats(ctx context.Context, m Meter, _ request) (any, error) {
	samples := []machineStats{}
	err := eachCgroup(ctx, m, request{cgroup: "/"}, func(node *model.ContainerInfo) {
		for _, s := range node.Stats {
			v := machineStats{statsV2: newStatsV2(s)}
			for i := range s.Filesystem {
				v.Filesystem = append(v.Filesystem, newMachineFilesystem(&s.Filesystem[i]))
			}
			samples = append(samples, v)
		}
	})
	return samples, err
}

func newMachineFilesystem(f *model.FsStats) machineFilesystem {
	v := machineFilesystem{Device: f.Device, Type: f.Type, Capacity: f.Limit, Usage: f.Usage, Available: f.Available}
	if f.HasInodes {
		v.InodesFree = &f.InodesFree
	}
	return v
}

func querySpec(ctx context.Context, m Meter, r request) (any, error) {
	specs := map[string]specV2{}
	err := eachCgroup(ctx, m, r, func(c *model.ContainerInfo) { specs[c.Name] = newSpecV2(c) })
	return specs, err
}

// queryStats omits the root cgroup, as cAdvisor does: its usage is in the machinestats.
func queryStats(ctx context.Context, m Meter, r request) (any, error) {
	containers := map[string]containerV2{}
	err := eachCgroup(ctx, m, r, func(c *model.ContainerInfo) {
		if c.Name == "/" {
			return
		}
		v := containerV2{Spec: newSpecV2(c)}
		for _, s := range c.Stats {
			v.Stats = append(v.Stats, newStatsV2(s))
		}
		containers[c.Name] = v
	})
	return containers, err
}

// eachCgroup calls f for each cgroup of the request.
func eachCgroup(ctx context.Context, m Meter, r request, f func(*model.ContainerInfo)) error {
	cgroups, err := m.Containers(ctx)
	if err != nil {
		return err
	}
	selected, err := r.selectCgroups(cgroups)
	for _, c := range selected {
		f(c)
	}
	return err
}

func newSpecV2(c *model.ContainerInfo) specV2 {
	return specV2{ContainerSpec: c.Spec, Aliases: c.Aliases, Namespace: c.Namespace}
}

func newStatsV2(s *model.ContainerStats) *statsV2 {
	v := &statsV2{Timestamp: s.Timestamp, Cpu: s.Cpu, CpuInst: s.CpuInst, DiskIo: s.DiskIo, Memory: s.Memory, Processes: s.Processes}
	if s.Network != nil {
		v.Network = &networkV2{Interfaces: s.Network.Interfaces}
	}
	if len(s.Filesystem) == 1 {
		f := &s.Filesystem[0]
		v.Filesystem = &filesystemV2{TotalUsageBytes: f.Usage, BaseUsageBytes: f.BaseUsage, InodeUsage: f.Inodes}
	}
	return v
}
