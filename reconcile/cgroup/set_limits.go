package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"podd/reconcile/render"
)

// SetLimits sets the limits of the existing cgroup c.Path in every hierarchy. Unlike Create, it
// creates no cgroup, because a cgroup that podd created would contain none of the processes to limit. On
// cgroup v2, it limits huge pages only if the controller hugetlb is enabled, because systemd does not
// enable this controller for its slices.
func SetLimits(c render.Cgroup) error {
	config, err := libraryConfig(c)
	if err != nil {
		return err
	}
	m, err := manager.New(config)
	if err != nil {
		return fmt.Errorf("opening cgroup %s: %w", c.Path, err)
	}
	if cgroups.IsCgroup2UnifiedMode() {
		var enabled []string
		enabled, err = checkV2(c, m.Path(""))
		if !slices.Contains(enabled, hugePagesController) {
			config.Resources.HugetlbLimit = nil
		}
	} else {
		err = checkV1(c, m.GetPaths())
	}
	if err != nil {
		return err
	}
	if err := set(m, config.Resources, c.CPUs); err != nil {
		return fmt.Errorf("setting the limits of cgroup %s: %w", c.Path, err)
	}
	return nil
}

// A missingError reports that a cgroup does not exist.
type missingError struct {
	Path  string   // path of the cgroup below the mount points
	Slice string   // name of the slice; "" with the driver cgroupfs
	Dirs  []string // directories of the cgroup that do not exist
}

// newMissingError returns a missingError for the cgroup c.
func newMissingError(c render.Cgroup, dirs ...string) *missingError {
	e := &missingError{Path: c.Path, Dirs: dirs}
	if c.UsesSystemd {
		e.Slice = path.Base(c.Path)
	}
	return e
}

// Error returns the error with its remedy.
func (e *missingError) Error() string {
	if e.Slice != "" {
		return fmt.Sprintf("cgroup %s does not exist: %s is missing; start it before podd starts, for example with: systemctl start %s", e.Path, strings.Join(e.Dirs, ", "), e.Slice)
	}
	return fmt.Sprintf("cgroup %s does not exist; create it before podd starts, for example with: mkdir -p %s", e.Path, strings.Join(e.Dirs, " "))
}

// hugePagesController is the controller of huge pages.
const hugePagesController = "hugetlb"

// checkV2 returns the controllers that are enabled in the cgroup v2 directory dir. It returns an
// error if the directory does not exist, or lacks a controller that limits the cgroup. Only the
// controller of huge pages may be missing. The kubelet requires that controller, too, and
// controllers that do not limit the cgroup.
func checkV2(c render.Cgroup, dir string) (enabled []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, newMissingError(c, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the controllers of cgroup %s: %w", c.Path, err)
	}
	enabled = strings.Fields(string(text))
	for _, name := range limitingControllers(c) {
		if name != hugePagesController && !slices.Contains(enabled, name) {
			return nil, fmt.Errorf("the controller %s of cgroup %s is not enabled; enable it in %s", name, c.Path, filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"))
		}
	}
	return enabled, nil
}

// checkV1 checks the cgroup v1 hierarchies of all controllers that limit the cgroup. It returns an
// error if the cgroup does not exist in one of them. If no controller limits the cgroup, the cgroup
// must exist in at least one hierarchy. dirs contains the directories of the cgroup by controller;
// the key "" is the v2 hierarchy, which sets no limits.
func checkV1(c render.Cgroup, dirs map[string]string) error {
	var missingDirs, v1Dirs []string
	exists := false
	controllers := limitingControllers(c)
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if dir := dirs[name]; name != "" {
			info, err := os.Stat(dir)
			isDir := err == nil && info.IsDir()
			exists, v1Dirs = exists || isDir, append(v1Dirs, dir)
			if !isDir && slices.Contains(controllers, name) {
				missingDirs = append(missingDirs, dir)
			}
		}
	}
	for _, name := range controllers {
		if dirs[name] == "" {
			return fmt.Errorf("cgroup %s cannot be limited, because the controller %s is not mounted; mount it below /sys/fs/cgroup", c.Path, name)
		}
	}
	if len(controllers) == 0 && !exists {
		missingDirs = v1Dirs
	}
	if len(missingDirs) > 0 {
		return newMissingError(c, slices.Compact(missingDirs)...)
	}
	return nil
}

// limitingControllers returns the controllers that are necessary for the limits of c.
func limitingControllers(c render.Cgroup) (controllers []string) {
	for name, isLimited := range map[string]bool{
		"cpu": c.CPUShares != 0, "memory": c.Memory != 0, "pids": c.Pids != 0, hugePagesController: len(c.HugePages) > 0,
	} {
		if isLimited {
			controllers = append(controllers, name)
		}
	}
	slices.Sort(controllers)
	return controllers
}
