package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/cgroups/systemd"

	"podd/reconcile/render"
)

// sliceOf is how the library names the slice at a path.
func sliceOf(at string, r *cgroups.Resources) *cgroups.Cgroup {
	parent := path.Base(path.Dir(at))
	if parent == "/" {
		parent = "-" + slice // the root of all slices
	}
	return &cgroups.Cgroup{Systemd: true, Name: path.Base(at), Parent: parent, Resources: r}
}

// stopSlice has systemd stop the slice at a path, unless processes are in it:
// those a stop would end. Without that systemd keeps the unit of a cgroup that
// is long gone, for as long as the machine runs.
func stopSlice(points []string, at string) error {
	if !systemd.IsRunningSystemd() {
		return nil
	}
	there := false
	for _, point := range points {
		dir := filepath.Join(point, at)
		if len(processes(dir, 0)) > 0 {
			return nil
		}
		_, err := os.Stat(dir)
		there = there || err == nil
	}
	if !there {
		return nil
	}
	m, err := manager.New(sliceOf(at, resources(render.Cgroup{})))
	if err == nil {
		err = m.Destroy()
	}
	if err != nil {
		return fmt.Errorf("stopping the slice %s: %w", path.Base(at), err)
	}
	return nil
}
