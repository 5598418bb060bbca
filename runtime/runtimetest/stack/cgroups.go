package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// hierarchies lists where cgroups are mounted: one directory a controller on
// v1, and the one of v2.
func hierarchies() ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("listing cgroup mounts: %w", err)
	}
	var roots []string
	for _, m := range infos {
		roots = append(roots, m.Mountpoint)
	}
	return roots, nil
}

// findCgroups lists the cgroups, in every hierarchy, whose path matches; a
// parent stands after its children.
func findCgroups(match func(path string) bool) ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // it went away meanwhile
				return nil
			}
			if err == nil && d.IsDir() && match(strings.TrimPrefix(path, root)) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("looking for cgroups: %w", err)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// removeCgroups removes those that match. They must have no processes, but
// the kernel may be busy with one that has just ended.
func removeCgroups(match func(path string) bool) error {
	found, err := findCgroups(match)
	errs := []error{err}
	for _, dir := range found {
		if err := removeCgroup(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func removeCgroup(dir string) error {
	again := time.NewTicker(poll)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-again.C {
		err := unix.Rmdir(dir)
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// ownCgroups matches what is at or below the stack's cgroup parent, and the
// cgroups of its containers wherever they are.
func (s *Stack) ownCgroups() func(path string) bool {
	ids := s.containerIDs()
	parent := s.CgroupParent()
	return func(path string) bool {
		if s.claimed() && (path == parent || strings.HasPrefix(path, parent+"/")) {
			return true
		}
		for part := range strings.SplitSeq(path, "/") {
			if ids[part] {
				return true
			}
		}
		return false
	}
}

// containerIDs are the containers and sandboxes that containerd, its shims or
// runc still remember on disk, and those that endProcesses saw.
func (s *Stack) containerIDs() map[string]bool {
	ids := map[string]bool{}
	maps.Copy(ids, s.ended)
	for _, dir := range []string{
		"runc/k8s.io", "run/io.containerd.runtime.v2.task/k8s.io",
		"root/io.containerd.grpc.v1.cri/sandboxes", "root/io.containerd.grpc.v1.cri/containers",
	} {
		entries, err := os.ReadDir(filepath.Join(s.own(), dir))
		if err != nil {
			continue // not made yet, or gone
		}
		for _, e := range entries {
			ids[e.Name()] = true
		}
	}
	return ids
}
