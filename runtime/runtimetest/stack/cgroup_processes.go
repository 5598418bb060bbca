package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podd/runtime/runtimetest/stack/reservation"
)

// killInCgroups kills all processes in the cgroups that the function match selects by their path.
// These can be commands that were executed in containers, and processes of containers whose shim or
// monitor has exited. killInCgroups retries for at most busyTimeout until the cgroups contain no
// process.
func killInCgroups(ctx context.Context, match func(path string) bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for deadline := time.Now().Add(busyTimeout); ; <-ticker.C {
		dirs, err := findCgroups(match)
		if err != nil {
			return err
		}
		var pids []int
		for _, dir := range dirs {
			pids = append(pids, processesIn(dir)...)
			thaw(dir)
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("killing the processes of containers: processes %v still run after %s", pids, busyTimeout)
		}
		for _, pid := range pids {
			owner, err := reservation.FindProcess(pid)
			if err != nil { // the process has exited
				continue
			}
			if err := killProcess(ctx, owner); err != nil {
				return fmt.Errorf("killing process %d of a container: %w", pid, err)
			}
		}
	}
}

// processesIn returns the IDs of the processes in a cgroup, except this process. The result is
// empty if the cgroup was removed or contains only threads.
func processesIn(dir string) []int {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// thaw thaws the frozen processes of the stack, because frozen processes cannot be killed.
func (s *Stack) thaw() error {
	dirs, err := findCgroups(s.matchOwnCgroups())
	for _, dir := range dirs {
		thaw(dir)
	}
	return err
}

// thaw thaws the frozen processes of a cgroup of version 1. A cgroup of version 2 has no file
// freezer.state, and its frozen processes can be killed, so thaw does nothing.
func thaw(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "freezer.state"), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString("THAWED") // if this fails, killInCgroups reports the processes that still run
}
