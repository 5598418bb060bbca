package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/reservation"
	"podd/runtime/runtimetest/stack/tools"
)

// findProcesses returns the processes that the function match selects by their command line.
func findProcesses(match func(args []string) bool) ([]reservation.Owner, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing the processes of the host: %w", err)
	}
	var found []reservation.Owner
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		owner, err := reservation.FindProcess(pid)
		if err != nil { // the process has exited
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && match(strings.Split(string(cmdline), "\x00")) && owner.IsAlive() {
			found = append(found, owner)
		}
	}
	return found, nil
}

// isOwn reports whether a command line belongs to a process of this stack.
func (s *Stack) isOwn(args []string) bool {
	return s.isDaemon(args) || s.isConmon(args) || s.isTool(args)
}

// isDaemon reports whether a command line belongs to the stack's runtime or one of its shims. Their
// command lines contain the path of the stack's configuration or socket.
func (s *Stack) isDaemon(args []string) bool {
	for _, f := range flavors {
		if strings.HasPrefix(filepath.Base(args[0]), daemonName(f)) &&
			(slices.Contains(args, configIn(s.Dir, f)) || slices.Contains(args, socketIn(s.Dir, f))) {
			return true
		}
	}
	return false
}

// isConmon reports whether a command line belongs to a monitor that the stack's CRI-O has started.
func (s *Stack) isConmon(args []string) bool {
	return filepath.Base(args[0]) == "conmon" && s.hasOwnPath(args)
}

// toolNames lists programs that a runtime or this package starts. They may still run after the
// process that started them has exited.
var toolNames = []string{"runc", "pinns", "skopeo", "ctr"}

func (s *Stack) isTool(args []string) bool {
	return slices.Contains(toolNames, filepath.Base(args[0])) && s.hasOwnPath(args)
}

// hasOwnPath reports whether an argument contains the stack's socket or a path in the stack's
// directory.
func (s *Stack) hasOwnPath(args []string) bool {
	return slices.ContainsFunc(args[1:], func(a string) bool {
		return strings.Contains(a, s.privateDir()+"/") || a == socketIn(s.Dir, tools.Pinned)
	})
}

// countShims returns the number of running shims or monitors of the stack.
func (s *Stack) countShims() (int, error) {
	own, err := findProcesses(func(args []string) bool { return s.isDaemon(args) || s.isConmon(args) })
	return len(slices.DeleteFunc(own, func(o reservation.Owner) bool { return o == s.Daemon })), err
}

// killProcesses kills the stack's runtime, its shims or monitors, the programs that they have
// started, and all processes in the shims' containers. It waits until the killed processes have
// exited. Then it searches again until it finds no such process, because an exiting runtime can
// still start a shim.
func (s *Stack) killProcesses(ctx context.Context) error {
	for {
		own, err := findProcesses(s.isOwn)
		if err != nil || len(own) == 0 {
			return err
		}
		inside, err := descendants(own)
		if err != nil {
			return err
		}
		own = append(own, inside...)
		s.recordContainers(own)
		if err := s.thaw(); err != nil {
			return err
		}
		for _, o := range own {
			if err := killProcess(ctx, o); err != nil {
				return fmt.Errorf("killing process %d of the stack in %s: %w", o.PID, s.Dir, err)
			}
		}
	}
}

// recordContainers records the container IDs in the cgroup names of processes. Destroy uses the IDs
// after the stack's files were removed. The cgroups of this process are ignored, because this
// process may run in a container.
func (s *Stack) recordContainers(processes []reservation.Owner) {
	if s.killedContainers == nil {
		s.killedContainers = map[string]bool{}
	}
	outer := containersOf(os.Getpid())
	for _, o := range processes {
		for _, id := range containersOf(o.PID) {
			if !slices.Contains(outer, id) {
				s.killedContainers[id] = true
			}
		}
	}
}

// containersOf returns the container IDs in the cgroup names of a process, or nil if the process
// has exited.
func containersOf(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	return containerID.FindAllString(string(data), -1)
}

// containerID matches the runtimes' IDs of sandboxes and containers.
var containerID = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// killProcess kills a process and waits until it has exited.
func killProcess(ctx context.Context, o reservation.Owner) error {
	p, err := openProcess(o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	return p.terminate(ctx, unix.SIGKILL, 10*time.Second)
}
