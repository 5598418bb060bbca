package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// hierarchies returns the mount points of cgroup hierarchies: one per controller for v1, and one
// for v2.
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

// findCgroups returns the directories of all cgroups that the function match selects by their path.
// It searches every hierarchy. Children come before their parent.
func findCgroups(match func(path string) bool) ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // the cgroup was removed
				return nil
			}
			if err == nil && d.IsDir() && match(strings.TrimPrefix(path, root)) {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("searching for cgroups of the stack: %w", err)
		}
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// removeCgroups removes all cgroups that the function match selects by their path. The cgroups must
// contain no processes. The kernel may still be busy with a process that has just exited. Therefore
// removeCgroups retries for up to busyTimeout in total. The error contains the processes in each
// cgroup that is in use.
func removeCgroups(match func(path string) bool) error {
	dirs, err := findCgroups(match)
	errs := []error{err}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for deadline := time.Now().Add(busyTimeout); ; <-ticker.C {
		dirs = slices.DeleteFunc(dirs, func(dir string) bool { return isRemoved(unix.Rmdir(dir)) })
		if len(dirs) == 0 {
			return errors.Join(errs...)
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for _, dir := range dirs {
		errs = append(errs, fmt.Errorf("removing cgroup %s: %w; processes in it: %v", dir, unix.Rmdir(dir), processesIn(dir)))
	}
	return errors.Join(errs...)
}

// busyTimeout is the maximum time until processes and cgroups disappear after a kill.
const busyTimeout = time.Minute

// isRemoved reports whether err, the result of a removal, means that the object no longer
// exists.
func isRemoved(err error) bool { return err == nil || errors.Is(err, fs.ErrNotExist) }

// matchOwnCgroups returns a function that matches the stack's cgroup parent and all cgroups below
// it. The function also matches the cgroups of the stack's containers, because some of them are not
// below the parent.
func (s *Stack) matchOwnCgroups() func(path string) bool {
	ids := s.containerIDs()
	parent := s.CgroupParent()
	return func(path string) bool {
		if s.hasReservation() && (path == parent || strings.HasPrefix(path, parent+"/")) {
			return true
		}
		for part := range strings.SplitSeq(path, "/") {
			if ids[crioPrefix.ReplaceAllString(part, "")] {
				return true
			}
		}
		return false
	}
}

// crioPrefix matches the prefix of the ID in CRI-O's names of cgroups.
var crioPrefix = regexp.MustCompile(`^crio-(conmon-)?`)

// containerIDs returns the IDs of the containers and sandboxes in the directories of the runtime,
// its shims and runc, and the IDs that killProcesses found.
func (s *Stack) containerIDs() map[string]bool {
	ids := map[string]bool{}
	maps.Copy(ids, s.killedContainers)
	for _, dir := range []string{
		"runc/k8s.io", "run/io.containerd.runtime.v2.task/k8s.io",
		"root/io.containerd.grpc.v1.cri/sandboxes", "root/io.containerd.grpc.v1.cri/containers",
		"runc/crio", "run/overlay-containers", "root/overlay-containers", "root/vfs-containers",
	} {
		entries, err := os.ReadDir(filepath.Join(s.privateDir(), dir))
		if err != nil {
			continue // the directory was not created yet, or was removed
		}
		for _, e := range entries {
			if containerID.FindString(e.Name()) == e.Name() { // skip other names, because processes in cgroups with the returned names are killed
				ids[e.Name()] = true
			}
		}
	}
	return ids
}
