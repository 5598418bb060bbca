package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
)

// cpusFile is the file with the CPUs that the processes in a cgroup can use.
const cpusFile = "cpuset.cpus"

// set sets the limits of a cgroup. cpus contains the CPUs that the cgroup can use; "" means that set
// keeps the CPUs. set ignores cpus if the cgroup does not have the controller cpuset.
//
// With cgroup v2 and the driver systemd, setting the CPUs also makes systemd manage the controller.
// Otherwise systemd may disable the controller for all pods (getCgroupConfig in pkg/kubelet/cm).
func set(m cgroups.Manager, r *cgroups.Resources, cpus string) error {
	if cgroups.IsCgroup2UnifiedMode() {
		return m.Set(withCPUs(r, m.Path(""), cpus))
	}
	err := m.Set(r)
	if cpus != "" {
		err = errors.Join(err, copyParentCPUs(m.Path("cpuset")))
	}
	return err
}

// withCPUs returns r with the CPUs of the cgroup dir (v2), if the controller cpuset is enabled. The
// kernel permits CPUs that the parent of the cgroup lacks.
func withCPUs(r *cgroups.Resources, dir, cpus string) *cgroups.Resources {
	if _, err := os.Stat(filepath.Join(dir, cpusFile)); err != nil {
		return r
	}
	changed := *r
	changed.CpusetCpus = cpus
	return &changed
}

// copyParentCPUs gives the cgroup dir (v1) all CPUs of its parent, because the kernel permits no others.
// The parent of the cgroup of all pods usually has all CPUs that are online. If the CPUs are equal,
// copyParentCPUs writes nothing, because a write is slow. dir is "" if the host has no such hierarchy.
func copyParentCPUs(dir string) error {
	own, err := os.ReadFile(filepath.Join(dir, cpusFile))
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), cpusFile))
	if err != nil || string(all) == string(own) || strings.TrimSpace(string(all)) == "" {
		return err
	}
	return os.WriteFile(filepath.Join(dir, cpusFile), all, 0)
}
