package cgroup

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/cgroups/systemd"

	"podd/reconcile/render"
)

// sliceConfig returns the configuration of the slice at the given path for the cgroups library.
func sliceConfig(slicePath string, r *cgroups.Resources) *cgroups.Cgroup {
	parent := path.Base(path.Dir(slicePath))
	if parent == "/" {
		parent = "-" + sliceSuffix // the root slice
	}
	return &cgroups.Cgroup{Systemd: true, Name: path.Base(slicePath), Parent: parent, Resources: r}
}

// stopSlice makes systemd stop the slice at the given path, which must exist. If the slice were not
// stopped, systemd would keep the unit of the removed cgroup until the host is rebooted. stopSlice does
// nothing if the slice contains processes, because systemd would kill them. points are the mount points
// of the hierarchies.
func stopSlice(points []string, slicePath string) error {
	if !systemd.IsRunningSystemd() {
		return nil
	}
	for _, point := range points {
		if len(listProcesses(filepath.Join(point, slicePath), 0)) > 0 {
			return nil
		}
	}
	m, err := manager.New(sliceConfig(slicePath, libraryResources(render.Cgroup{})))
	if err == nil {
		err = m.Destroy()
	}
	if err != nil {
		return fmt.Errorf("stopping slice %s: %w", path.Base(slicePath), err)
	}
	return nil
}
