package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"
)

// Join moves this process to the cgroup with the given name in every hierarchy. It creates the cgroup if it does not
// exist. As in the kubelet, name is a path below the mount point of each hierarchy, even if the driver
// for pods is systemd.
func Join(name string) error {
	m, err := newGroup(name)
	if err == nil {
		err = m.Apply(os.Getpid())
	}
	if err != nil {
		return fmt.Errorf("moving podd to cgroup %s: %w", name, err)
	}
	return nil
}

// maxMoveRounds is the maximum number of times that MoveProcesses lists the processes. A process that
// is created during a round is moved in the next round.
const maxMoveRounds = 10

// MoveProcesses moves all processes of the cgroup from, except process 1 and the threads of the kernel,
// to the cgroup to. It creates the cgroup if it does not exist. Both names are paths as for Join. The
// processes of child cgroups stay where they are.
func MoveProcesses(from, to string) error {
	m, err := newGroup(to)
	if err != nil {
		return fmt.Errorf("moving the processes of cgroup %s to %s: %w", from, to, err)
	}
	for range maxMoveRounds {
		var pids []int
		if pids, err = movablePids(from); len(pids) == 0 {
			break
		}
		err = moveAll(m, pids)
	}
	if err != nil {
		return fmt.Errorf("moving the processes of cgroup %s to %s: %w", from, to, err)
	}
	return nil
}

// moveAll moves processes to a cgroup. It ignores processes that have exited.
func moveAll(m cgroups.Manager, pids []int) error {
	var errs []error
	for _, pid := range pids {
		if err := m.Apply(pid); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

// newGroup returns the manager of the cgroup with the path name, which may lack the leading slash.
func newGroup(name string) (cgroups.Manager, error) {
	return manager.New(&cgroups.Cgroup{Path: filepath.Join("/", name), Resources: &cgroups.Resources{SkipDevices: true}})
}

// movablePids returns the processes of a cgroup that MoveProcesses moves.
func movablePids(name string) ([]int, error) {
	m, err := newGroup(name)
	if err != nil {
		return nil, err
	}
	dir := m.Path("memory")
	if cgroups.IsCgroup2UnifiedMode() {
		dir = m.Path("")
	}
	allPIDs, err := cgroups.GetPids(dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range allPIDs {
		if pid > 1 && !isKernelThread(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isKernelThread reports whether a process has no program, because it is a thread of the kernel or has
// exited.
func isKernelThread(pid int) bool {
	_, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return errors.Is(err, fs.ErrNotExist)
}
