package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

// A busyError reports that a cgroup could not be removed because it contains processes. A later
// removal succeeds if the processes have exited.
type busyError struct {
	UID  types.UID
	Path string // path of the cgroup in the file system
	// Processes is the number of processes in the cgroup and in the cgroups below it. It is
	// 0 if the processes exited after the removal failed.
	Processes int
}

func (e *busyError) Error() string {
	return fmt.Sprintf("removing the cgroup of pod %s: %d processes remain in %s; podd retries", e.UID, e.Processes, e.Path)
}

// maxDepth is the maximum depth of nested cgroups that are read and removed. Containers can
// create cgroups below their own, and the kernel does not limit the depth by default
// (cgroup.max.depth).
const maxDepth = 512

// A TerminateFunc terminates a process that remains in the cgroup of a finished or removed pod.
// inCgroup reports whether the process is still in the cgroup. A TerminateFunc must call
// inCgroup after it has opened a descriptor of the process, because pid may have been
// reused for a different process.
type TerminateFunc func(pid int, inCgroup func() bool) error

// RemovePod removes a pod's cgroup and the cgroups below it from every hierarchy. Because
// the QoS class and the driver of the pod may be unknown, RemovePod tries all paths of
// PodPaths. found reports whether the cgroup existed. It is not an error if the cgroup does not exist.
//
// If the cgroup contains processes in a hierarchy, RemovePod calls terminate for each of
// these processes and returns an error. The cgroup is removed from
// the remaining hierarchies. If terminate is nil, no process is terminated. root is the
// parent of kubepods, as configured for the cgroupfs or the systemd driver; "" and "/" are
// the top of the hierarchy.
func RemovePod(ctx context.Context, root string, uid types.UID, terminate TerminateFunc) (found bool, err error) {
	points, err := listMountPoints()
	if err != nil {
		return false, err
	}
	var errs []error
	for _, class := range classPaths(root) {
		parent, driver := podPathInClass(class, uid)
		isHere, err := remove(ctx, points, parent, driver, uid, terminate)
		found, errs = found || isHere, append(errs, err)
	}
	return found, errors.Join(errs...)
}

// remove removes the cgroup of a pod for one driver and one cgroup parent. The results are those of
// RemovePod. points are the mount points of the hierarchies. parent is the cgroup parent, as in
// podPath.
func remove(ctx context.Context, points []string, parent, driver string, uid types.UID, terminate TerminateFunc) (found bool, err error) {
	cgroupPath, err := podPath(parent, driver, uid)
	if err != nil {
		return false, fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
	}
	if !slices.ContainsFunc(points, func(point string) bool {
		_, err := os.Lstat(filepath.Join(point, cgroupPath))
		return !errors.Is(err, fs.ErrNotExist)
	}) {
		return false, nil
	}
	if driver == driverSystemd {
		if err := stopSlice(points, cgroupPath); err != nil {
			return true, fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
		}
	}
	var errs []error
	for _, point := range points {
		err := removeTree(ctx, filepath.Join(point, cgroupPath), 0)
		if errors.Is(err, syscall.EBUSY) {
			var p *fs.PathError
			errors.As(err, &p)
			err = &busyError{UID: uid, Path: p.Path, Processes: len(listProcesses(p.Path, 0))}
			if terminate != nil {
				err = errors.Join(err, terminateProcesses(filepath.Join(point, cgroupPath), terminate))
			}
		} else if err != nil {
			err = fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
		}
		errs = append(errs, err)
	}
	return true, errors.Join(errs...)
}

// removeTree removes the cgroup dir and the cgroups below it. depth is the number of
// cgroups between dir and the cgroup of the pod. removeTree tries to remove dir before it
// reads dir, because usually there are no cgroups below dir. It removes nothing in a file
// system that is mounted at dir or below dir, and returns an error that wraps
// safepath.ErrMount.
func removeTree(ctx context.Context, dir string, depth int) error {
	err := rmdir(dir)
	if err == nil {
		return nil
	}
	if isMountPoint(dir) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: safepath.ErrMount}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	subs, lerr := listChildren(dir)
	if lerr != nil || len(subs) == 0 || depth >= maxDepth {
		return errors.Join(err, lerr)
	}
	for _, sub := range subs {
		if err := removeTree(ctx, sub, depth+1); err != nil {
			return err
		}
	}
	return rmdir(dir)
}

// rmdir removes a cgroup. It returns nil if the cgroup does not exist. rmdir does not
// remove the files in the cgroup, because the kernel removes them with the cgroup.
func rmdir(dir string) error {
	for {
		err := syscall.Rmdir(dir)
		switch err {
		case nil, syscall.ENOENT:
			return nil
		case syscall.EINTR:
			continue
		case syscall.EROFS: // the kernel also returns EROFS if dir does not exist
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
}

// isMountPoint reports whether a file system is mounted at dir. It returns false if dir does not
// exist, and before Linux 5.8, which does not report mount points.
func isMountPoint(dir string) bool {
	var info unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &info)
	return err == nil && info.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// listChildren returns the paths of the cgroups in dir. It returns nil and no error if dir does
// not exist.
func listChildren(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var subs []string
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, filepath.Join(dir, e.Name()))
		}
	}
	return subs, nil
}

// listProcesses returns the PIDs of the processes in the cgroup dir and in the cgroups below
// dir. It ignores cgroups that cannot be read, and file systems that are mounted below dir.
func listProcesses(dir string, depth int) []int {
	if depth > 0 && isMountPoint(dir) {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	if depth < maxDepth {
		subs, _ := listChildren(dir)
		for _, sub := range subs {
			pids = append(pids, listProcesses(sub, depth+1)...)
		}
	}
	return pids
}

// terminateProcesses calls terminate for each process in the cgroup dir and in the cgroups
// below dir.
func terminateProcesses(dir string, terminate TerminateFunc) error {
	var errs []error
	for _, pid := range listProcesses(dir, 0) {
		errs = append(errs, terminate(pid, func() bool { return slices.Contains(listProcesses(dir, 0), pid) }))
	}
	return errors.Join(errs...)
}
