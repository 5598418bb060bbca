// Package shim kills the shim process of a sandbox if containerd has lost track of a task
// in the sandbox.
//
// containerd (at least 1.6 to 2.4) may fail to record a task that its shim has created if the
// client disconnects during StartContainer, for example because podd was killed. The error is
// "failed to get task pid: context canceled". The container is then listed as exited. The container
// and its sandbox cannot be removed; the error is "cannot delete running task". No CRI call stops
// such a task. After the shim has exited, containerd cleans up.
package shim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shimPrefix is the common prefix of the program names of containerd's shims.
const shimPrefix = "containerd-shim"

// Kill kills the shim of a sandbox with SIGKILL. found reports whether a shim was running. The
// caller must stop the sandbox first, because processes of the sandbox that still run lose their
// shim.
func Kill(sandboxID string) (found bool, err error) { return killInProc("/proc", sandboxID) }

// killInProc works like Kill, but reads the directory procDir instead of /proc.
func killInProc(procDir, sandboxID string) (found bool, err error) {
	if sandboxID == "" {
		return false, nil
	}
	entries, err := os.ReadDir(procDir)
	if err != nil {
		return false, fmt.Errorf("finding the shim of sandbox %s: %w", sandboxID, err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		isShim := func() bool { return shimSandbox(filepath.Join(procDir, e.Name())) == sandboxID }
		if err != nil || !isShim() {
			continue
		}
		if err := killIf(pid, isShim); err != nil {
			return true, fmt.Errorf("killing the shim of sandbox %s: %w", sandboxID, err)
		}
		found = true
	}
	return found, nil
}

// killIf kills a process if isExpected returns true. It calls isExpected after opening a
// descriptor of the process, so that a later process with the same pid is not killed. It
// returns nil if the process has exited.
func killIf(pid int, isExpected func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
		if !isExpected() {
			return nil
		}
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// maxArgsBytes is the maximum number of bytes of a command line that are read. The command line of a
// shim is much shorter.
const maxArgsBytes = 64 << 10

// shimSandbox returns the sandbox ID of the shim process with the given directory in /proc.
// It returns "" if the process is not a shim or has exited.
func shimSandbox(procDir string) (sandboxID string) {
	f, err := os.Open(filepath.Join(procDir, "cmdline"))
	if err != nil {
		return "" // the process has exited
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, maxArgsBytes))
	if err != nil {
		return ""
	}
	return sandboxArg(strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00"))
}

// sandboxArg returns the sandbox ID in the arguments of a shim process, or "" if args are
// the arguments of another program.
func sandboxArg(args []string) (sandboxID string) {
	if !strings.HasPrefix(path.Base(args[0]), shimPrefix) {
		return ""
	}
	for i := range args[:len(args)-1] {
		if args[i] == "-id" {
			return args[i+1]
		}
	}
	return ""
}
