package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"podd/reconcile/render"
)

// Create creates the cgroup c.Path in every hierarchy in which it does not exist, and sets
// the limits of c. Create does not change the limits of child cgroups.
func Create(c render.Cgroup) error {
	config, err := libraryConfig(c)
	if err != nil {
		return fmt.Errorf("creating a cgroup: %w", err)
	}
	m, err := manager.New(config)
	if err != nil {
		return fmt.Errorf("creating cgroup %s: %w", c.Path, err)
	}
	if err := m.Apply(-1); err != nil { // -1 adds no process to the cgroup
		return fmt.Errorf("creating cgroup %s: %w", c.Path, err)
	}
	enableCloneChildren(m.Path("cpuset"))
	if err := set(m, config.Resources, c.CPUs); err != nil {
		return fmt.Errorf("setting the limits of cgroup %s: %w", c.Path, err)
	}
	return nil
}

// enableCloneChildren makes the kernel copy the CPUs and memory nodes of the cgroup dir to each new
// cgroup in dir. Only cgroup v1 has this setting. Without the setting, the cgroups library or the
// runtime must write the CPUs to each new cgroup. Such a write is slow, because the kernel visits
// every cpuset of the host. The setting only saves time, so errors are ignored.
func enableCloneChildren(dir string) {
	setting := filepath.Join(dir, "cgroup.clone_children")
	if text, err := os.ReadFile(setting); err == nil && strings.TrimSpace(string(text)) == "0" {
		_ = os.WriteFile(setting, []byte("1"), 0)
	}
}

// libraryConfig converts c to the configuration type of the cgroups library.
func libraryConfig(c render.Cgroup) (*cgroups.Cgroup, error) {
	driver := driverCgroupfs
	if c.UsesSystemd {
		driver = driverSystemd
	}
	cgroupPath, err := hierarchyPath(c.Path, driver)
	if err != nil {
		return nil, err
	}
	r := libraryResources(c)
	if !c.UsesSystemd {
		return &cgroups.Cgroup{Path: cgroupPath, Resources: r}, nil
	}
	return sliceConfig(cgroupPath, r), nil
}

func libraryResources(c render.Cgroup) *cgroups.Resources {
	r := &cgroups.Resources{
		CpuQuota: c.CPUQuota, CpuPeriod: uint64(c.CPUPeriod), Memory: c.Memory,
		SkipDevices: true, SkipFreezeOnSet: true,
	}
	switch {
	case c.CPUShares == 0:
	case cgroups.IsCgroup2UnifiedMode():
		r.CpuWeight = cpuWeight(c.CPUShares)
	default:
		r.CpuShares = uint64(c.CPUShares)
	}
	if c.Pids > 0 {
		r.PidsLimit = &c.Pids
	}
	if c.Protection != nil {
		r.Unified = c.Protection.Files()
	}
	for _, h := range c.HugePages {
		r.HugetlbLimit = append(r.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: h.PageSize, Limit: h.Limit})
	}
	return r
}

// cpuWeight converts CPU shares (2 to 262144) to a cpu.weight of cgroup v2 (1 to 10000).
// The formula is the kubelet's. Runtimes use a different formula for containers.
func cpuWeight(shares int64) uint64 { return uint64(1 + (shares-2)*9999/262142) }

// HugePageSizes returns the huge page sizes of the host in the format of the kernel
// ("2MB"). It returns nil if no cgroup hierarchy limits huge pages.
func HugePageSizes() []string {
	points, err := listMountPoints()
	if err != nil || !slices.ContainsFunc(points, limitsHugePages) {
		return nil
	}
	return cgroups.HugePageSizes()
}

// limitsHugePages reports whether a hierarchy limits huge pages. point is the mount point of the
// hierarchy. If the host has v1 hierarchies, too, limitsHugePages ignores the v2 hierarchy, because
// the limits are set in the v1 hierarchies only.
func limitsHugePages(point string) bool {
	if !cgroups.IsCgroup2UnifiedMode() {
		return path.Base(point) == "hugetlb"
	}
	text, _ := os.ReadFile(path.Join(point, "cgroup.controllers"))
	return slices.Contains(strings.Fields(string(text)), "hugetlb")
}
