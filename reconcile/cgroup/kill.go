package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// killInterval is the interval between two attempts of KillContainers. With cgroup v1, a process
	// can fork between the list of the processes and their signals, so that one attempt is not
	// sufficient.
	killInterval = 20 * time.Millisecond
	// maxSignalBatch is the maximum number of processes of which descriptors are open at the same time.
	maxSignalBatch = 256
)

// KillContainers kills the processes of containers without the runtime, as the kernel does when a
// container has no memory left. uid is the UID of their pod, ids contains the IDs of the containers
// and of the sandbox, and root is the parent of kubepods, as in RemovePod. KillContainers returns a nil
// error if no process remains in the cgroup of the pod, even if it has killed none. It returns an error
// if processes remain when the deadline of ctx has passed.
//
// found reports whether KillContainers has found a cgroup of a container or of the sandbox in the cgroup
// of the pod. If there is none, KillContainers returns an error, because the containers may run in other
// cgroups, for example with another cgroup driver. wereFound reports whether an earlier call has found one.
// Then there is no such error, because the cgroups may have been removed after the kill. KillContainers
// cannot find the processes that Kata Containers starts outside the cgroup of the pod.
//
// KillContainers kills only processes that are in the cgroup of the pod, and there in a cgroup whose
// name contains one of the IDs. An ID belongs to one container only. So processes of the host, of
// other pods, of other agents and of a later attempt of the same pod are never killed. Processes
// that support a container, such as the conmon of CRI-O, continue, so that they report the exit to
// the runtime.
func KillContainers(ctx context.Context, root string, uid types.UID, ids []string, wereFound bool) (found bool, err error) {
	dirs, err := podDirs(root, uid)
	if err != nil {
		return false, fmt.Errorf("killing the processes of pod %s: %w", uid, err)
	}
	if len(dirs) == 0 && !wereFound {
		return false, fmt.Errorf("killing the processes of pod %s: the pod has no cgroup; restart the runtime", uid)
	}
	for {
		var errs []error
		for _, dir := range dirs {
			foundHere, err := killChildren(dir, ids)
			found = found || foundHere
			errs = append(errs, err)
		}
		cause := errors.Join(errs...)
		n := countProcesses(dirs)
		if n == 0 && !found && !wereFound {
			return false, withCause(fmt.Errorf("killing the processes of pod %s: the cgroup of the pod contains no cgroup of a container; restart the runtime", uid), cause)
		}
		if n == 0 {
			return found, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return found, ctx.Err()
			}
			return found, withCause(fmt.Errorf("killing the processes of pod %s: %d processes remain in %s", uid, n, strings.Join(dirs, ", ")), cause)
		case <-time.After(killInterval):
		}
	}
}

// withCause adds cause, which may be nil, to the end of err.
func withCause(err, cause error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// podDirs returns the directories of the cgroup of a pod, one for each hierarchy that has the
// cgroup.
func podDirs(root string, uid types.UID) ([]string, error) {
	points, err := listMountPoints()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, class := range classPaths(root) {
		parent, driver := podPathInClass(class, uid)
		cgroupPath, err := podPath(parent, driver, uid)
		if err != nil {
			return nil, err
		}
		for _, point := range points {
			dir := filepath.Join(point, cgroupPath)
			if info, err := os.Lstat(dir); err == nil && info.IsDir() && !isMountPoint(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// countProcesses returns the number of processes in the cgroups dirs of one pod. With cgroup v1, a
// process is in several hierarchies.
func countProcesses(dirs []string) int {
	var pids []int
	for _, dir := range dirs {
		pids = append(pids, listProcesses(dir, 0)...)
	}
	slices.Sort(pids)
	return len(slices.Compact(pids))
}

// killChildren kills the processes in the cgroups of the containers with these IDs. podDir is the
// cgroup of their pod. found reports whether there is such a cgroup.
func killChildren(podDir string, ids []string) (found bool, err error) {
	children, err := listChildren(podDir)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, dir := range children {
		isOurs := slices.ContainsFunc(ids, func(id string) bool { return isContainerCgroup(filepath.Base(dir), id) })
		if isOurs && !isMountPoint(dir) {
			found = true
			errs = append(errs, killAll(dir))
		}
	}
	return found, errors.Join(errs...)
}

// isContainerCgroup reports whether name is the name of the cgroup of the container id. Runtimes
// add a prefix that ends with - or _, and the suffix .scope for systemd: "cri-containerd-ID.scope",
// "crio-ID", "kata_ID".
func isContainerCgroup(name, id string) bool {
	prefix, ok := strings.CutSuffix(strings.TrimSuffix(name, ".scope"), id)
	if !ok || id == "" || strings.HasSuffix(prefix, "conmon-") {
		return false
	}
	return prefix == "" || strings.HasSuffix(prefix, "-") || strings.HasSuffix(prefix, "_")
}

// killAll kills all processes in the cgroup dir and in the cgroups below it. With cgroup v2, the
// kernel does this in one step (cgroup.kill, Linux 5.14).
func killAll(dir string) error {
	kill, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return signalAll(dir)
	}
	if err != nil {
		return err
	}
	defer kill.Close()
	_, err = kill.WriteString("1")
	if errors.Is(err, unix.ENODEV) { // the cgroup was removed in the meantime
		return nil
	}
	return err
}

// signalAll sends SIGKILL to the processes in the cgroup dir and in the cgroups below it. It reads
// the list of processes again after it has opened descriptors of them, because a PID may have been
// reused for a process outside the cgroup.
func signalAll(dir string) error {
	var errs []error
	for pids := range slices.Chunk(listProcesses(dir, 0), maxSignalBatch) {
		errs = append(errs, signalBatch(dir, pids))
	}
	return errors.Join(errs...)
}

// signalBatch works like signalAll for the processes pids.
func signalBatch(dir string, pids []int) error {
	var errs []error
	fds := map[int]int{} // by PID
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() { // 0 is a process of another PID namespace
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			if !errors.Is(err, unix.ESRCH) {
				errs = append(errs, os.NewSyscallError("pidfd_open", err))
			}
			continue
		}
		defer unix.Close(fd)
		fds[pid] = fd
	}
	for _, pid := range listProcesses(dir, 0) {
		fd, ok := fds[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, os.NewSyscallError("pidfd_send_signal", err))
		}
	}
	return errors.Join(errs...)
}
