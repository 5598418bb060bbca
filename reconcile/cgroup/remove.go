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

// BusyError is a cgroup that processes are still in, or are only just leaving;
// trying again helps once they are gone.
type BusyError struct {
	UID  types.UID
	Path string // of the cgroup, on the file system
	// Processes is how many there are in it and below; zero: they left since.
	Processes int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("removing the cgroup of pod %s: %d processes are left in %s; podd tries again", e.UID, e.Processes, e.Path)
}

// maxDepth bounds how deep containers may have nested cgroups of their own;
// the kernel's own bound (cgroup.max.depth) is none by default.
const maxDepth = 512

// Remove removes a pod's cgroup, with the empty ones below it, from every
// hierarchy. parent is what the runtime was given as cgroup parent: a path, for
// the driver Systemd that of a slice or its name alone. Already gone is nil. A
// cgroup that still has processes is a *BusyError; the other hierarchies are
// cleared all the same.
func Remove(ctx context.Context, parent, driver string, uid types.UID) error {
	points, err := hierarchies()
	if err != nil {
		return err
	}
	return remove(ctx, points, parent, driver, uid, nil)
}

// End ends a process that was found in the cgroup of a pod which the runtime
// knows nothing of any more. still tells whether it is there yet.
type End func(pid int, still func() bool) error

// RemovePod is Remove for a pod whose QoS class and driver are not known any
// more: it looks in all the places where its cgroup may be, and has end end what
// is left in them. root is the
// cgroup that kubepods lies in, as configured for either driver: "" and "/" are
// the top.
func RemovePod(ctx context.Context, root string, uid types.UID, end End) error {
	points, err := hierarchies()
	if err != nil {
		return err
	}
	var failed []error
	for _, dir := range classes(root) {
		parent, driver := inClass(dir, uid)
		failed = append(failed, remove(ctx, points, parent, driver, uid, end))
	}
	return errors.Join(failed...)
}

func remove(ctx context.Context, points []string, parent, driver string, uid types.UID, end End) error {
	at, err := podPath(parent, driver, uid)
	if err != nil {
		return fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
	}
	if driver == Systemd {
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
				err = errors.Join(err, endAll(filepath.Join(point, at), end))
			}
		} else if err != nil {
			err = fmt.Errorf("removing the cgroup of pod %s: %w", uid, err)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// removeTree removes empty cgroups, deepest first. Most often there is one and
// it is empty.
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

// rmdir takes a cgroup that is gone for removed. It never unlinks: the files
// of a cgroup go with it.
func rmdir(dir string) error {
	for {
		err := syscall.Rmdir(dir)
		switch err {
		case nil, syscall.ENOENT:
			return nil
		case syscall.EINTR:
			continue
		case syscall.EROFS: // said of what does not exist, too
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

// processes are those in a cgroup and below it; what cannot be read has none.
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

// endAll ends what is in a cgroup and below it.
func endAll(dir string, end End) error {
	var failed []error
	for _, pid := range processes(dir, 0) {
		failed = append(failed, end(pid, func() bool { return slices.Contains(processes(dir, 0), pid) }))
	}
	return errors.Join(failed...)
}
