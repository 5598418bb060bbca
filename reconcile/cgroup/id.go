package cgroup

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/opencontainers/cgroups/manager"

	"podd/reconcile/render"
)

// ID returns an identifier of the cgroup c that changes when the cgroup is removed or created again in a
// hierarchy. A new cgroup has none of the limits of the earlier one. ID returns an error if the paths of
// the cgroup cannot be determined.
func ID(c render.Cgroup) (string, error) {
	config, err := libraryConfig(c)
	if err != nil {
		return "", fmt.Errorf("identifying a cgroup: %w", err)
	}
	m, err := manager.New(config)
	if err != nil {
		return "", fmt.Errorf("identifying cgroup %s: %w", c.Path, err)
	}
	dirs := slices.Compact(slices.Sorted(maps.Values(m.GetPaths())))
	var id strings.Builder
	for _, dir := range dirs {
		fmt.Fprintf(&id, "%d ", inode(dir))
	}
	return id.String(), nil
}

// inode returns the inode number of a directory, or 0 if the directory does not exist. The kernel does
// not use the number of a removed cgroup again while the host runs.
func inode(dir string) uint64 {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	return stat.Ino
}
