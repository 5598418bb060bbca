package cgroup

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"podd/reconcile/render"
)

// Make makes a cgroup in every hierarchy, unless it is there, and gives it the
// limits of c. Those of what lies in it stay as they are.
func Make(c render.Cgroup) error {
	at, err := libraryConfig(c)
	if err != nil {
		return err
	}
	m, err := manager.New(at)
	if err != nil {
		return fmt.Errorf("making the cgroup %s: %w", c.Parent, err)
	}
	if err := m.Apply(-1); err != nil { // no process is put into it
		return fmt.Errorf("making the cgroup %s: %w", c.Parent, err)
	}
	if err := m.Set(at.Resources); err != nil {
		return fmt.Errorf("limiting the cgroup %s: %w", c.Parent, err)
	}
	return nil
}

func libraryConfig(c render.Cgroup) (*cgroups.Cgroup, error) {
	driver := Cgroupfs
	if c.Systemd {
		driver = Systemd
	}
	at, err := place(c.Parent, driver)
	if err != nil {
		return nil, fmt.Errorf("making a cgroup: %w", err)
	}
	r := resources(c)
	if !c.Systemd {
		return &cgroups.Cgroup{Path: at, Resources: r}, nil
	}
	return sliceOf(at, r), nil
}

func resources(c render.Cgroup) *cgroups.Resources {
	r := &cgroups.Resources{
		CpuQuota: c.CPUQuota, CpuPeriod: uint64(c.CPUPeriod), Memory: c.Memory,
		SkipDevices: true, SkipFreezeOnSet: true,
	}
	switch {
	case c.CPUShares == 0:
	case cgroups.IsCgroup2UnifiedMode():
		r.CpuWeight = weight(c.CPUShares)
	default:
		r.CpuShares = uint64(c.CPUShares)
	}
	if c.Pids > 0 {
		r.PidsLimit = &c.Pids
	}
	for _, h := range c.HugePages {
		r.HugetlbLimit = append(r.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: h.PageSize, Limit: h.Limit})
	}
	return r
}

// weight is the kubelet's image of cpu shares (2 to 262144) in cgroup v2's range
// of 1 to 10000; runtimes have another one for containers.
func weight(shares int64) uint64 { return uint64(1 + (shares-2)*9999/262142) }

// HugePageSizes are those of the machine, in the kernel's words ("2MB"), empty
// where no cgroup limits them.
func HugePageSizes() []string {
	points, err := hierarchies()
	if err != nil || !slices.ContainsFunc(points, limitsHugePages) {
		return nil
	}
	return cgroups.HugePageSizes()
}

// limitsHugePages: beside v1 hierarchies that of v2 is not used.
func limitsHugePages(point string) bool {
	if !cgroups.IsCgroup2UnifiedMode() {
		return path.Base(point) == "hugetlb"
	}
	text, _ := os.ReadFile(path.Join(point, "cgroup.controllers"))
	return slices.Contains(strings.Fields(string(text)), "hugetlb")
}
