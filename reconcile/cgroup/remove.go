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

	"k8s.io/apimachinery/pkg/types"
)

// A BusyError reports that a cgroup could not be removed because it has processes.
// Removing it again succeeds once they have exited.
type BusyError struct {
	UID  types.UID
	Path string // of the cgroup in the file system
	// Processes is the number of processes in the cgroup and below it. It is 0 if they
	// have exited in the meantime.
	Processes int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("removing the cgroup of pod %s: %d processes remain in %s; podd retries", e.UID, e.Processes, e.Path)
}

// maxDepth limits the depth of cgroups that containers have nested, because the limit of
// the kernel (cgroup.max.depth) is unlimited by default.
const maxDepth = 512

// End ends a process in the cgroup of a pod that the runtime no longer knows. still
// reports whether the process is still in the cgroup.
type End func(pid int, still func() bool) error

// RemovePod removes a pod's cgroup and the empty ones below it from every hierarchy. The
// QoS class and the driver of the pod are not known, so RemovePod tries all possible paths
// (see Places). It returns nil if the cgroup does not exist, and a *BusyError if it has
// processes in a hierarchy; it is removed from the others. end, unless it is nil, is called
// for these processes. root is the parent of kubepods, as configured for either driver; ""
// and "/" are the top of the hierarchy.
func RemovePod(ctx context.Context, root string, uid types.UID, end End) error {
	points, err := hierarchies()
	if err != nil {
		return err
	}
	var failed []error
	for _, dir := range classPaths(root) {
		parent, driver := podPathInClass(dir, uid)
		failed = append(failed, remove(ctx, points, parent, driver, uid, end))
	}
	return errors.Join(failed...)
}

// remove does what RemovePod does for one path. parent is the cgroup parent that was passed
// to the runtime: a path, or for driverSystemd the path or the name of a slice.
func remove(ctx context.Context, points []string, parent, driver string, uid types.UID, end End) error {
	at, err := podPath(parent, driver, uid)
	if err != nil {
		return fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
	}
	if driver == driverSystemd {
		if err := stopSlice(points, at); err != nil {
			return fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
		}
	}
	var failed []error
	for _, point := range points {
		err := removeTree(ctx, filepath.Join(point, at), 0)
		if errors.Is(err, syscall.EBUSY) {
			var p *fs.PathError
			errors.As(err, &p)
			err = &BusyError{UID: uid, Path: p.Path, Processes: len(processes(p.Path, 0))}
			if end != nil {
				err = errors.Join(err, endProcesses(filepath.Join(point, at), end))
			}
		} else if err != nil {
			err = fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// removeTree removes dir and the cgroups below it, the deepest first. It tries dir first,
// because usually there are no cgroups below it.
func removeTree(ctx context.Context, dir string, depth int) error {
	err := rmdir(dir)
	if err == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	subs, lerr := children(dir)
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

// rmdir removes a cgroup. It returns nil if the cgroup does not exist. It unlinks no
// files, because the kernel removes those of a cgroup.
func rmdir(dir string) error {
	for {
		err := syscall.Rmdir(dir)
		switch err {
		case nil, syscall.ENOENT:
			return nil
		case syscall.EINTR:
			continue
		case syscall.EROFS: // also returned if dir does not exist
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
}

func children(dir string) ([]string, error) {
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

// processes returns the processes in a cgroup and below it. A cgroup that cannot be read
// counts as empty.
func processes(dir string, depth int) []int {
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var all []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			all = append(all, pid)
		}
	}
	if depth < maxDepth {
		subs, _ := children(dir)
		for _, sub := range subs {
			all = append(all, processes(sub, depth+1)...)
		}
	}
	return all
}

// endProcesses calls end for each process in a cgroup and below it.
func endProcesses(dir string, end End) error {
	var failed []error
	for _, pid := range processes(dir, 0) {
		failed = append(failed, end(pid, func() bool { return slices.Contains(processes(dir, 0), pid) }))
	}
	return errors.Join(failed...)
}
