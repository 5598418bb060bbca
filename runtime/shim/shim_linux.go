// Package shim kills the shim process of a sandbox if containerd has lost track of a task
// in it.
//
// If the caller of StartContainer disconnects during the call, because podd was killed for
// example, containerd (at least 1.6 to 2.4) may fail to record a task that its shim has
// created: "failed to get task pid: context canceled". The container is exited then, and
// neither it nor its sandbox can ever be removed: "cannot delete running task". No call
// stops such a task. After the shim has exited, containerd cleans up.
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

// program is the prefix of the names of containerd's shims.
const program = "containerd-shim"

// End kills the shim of a sandbox and reports whether there was one. The sandbox must have
// been stopped, because its remaining processes would lose their shim.
func End(sandboxID string) (found bool, err error) { return end("/proc", sandboxID) }

func end(proc, sandboxID string) (found bool, err error) {
	if sandboxID == "" {
		return false, nil
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return false, fmt.Errorf("finding the shim of sandbox %s: %w", sandboxID, err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		is := func() bool { return shimID(filepath.Join(proc, e.Name())) == sandboxID }
		if err != nil || !is() {
			continue
		}
		if err := killIf(pid, is); err != nil {
			return true, fmt.Errorf("killing the shim of sandbox %s: %w", sandboxID, err)
		}
		found = true
	}
	return found, nil
}

// killIf kills a process if is returns true. It uses a descriptor of the process, so it
// never kills a later one with the same pid. It is not an error if the process has exited.
func killIf(pid int, is func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
		if !is() {
			return nil
		}
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// maxArgs limits how much is read of a command line, because that of a shim is short.
const maxArgs = 64 << 10

// shimID returns the sandbox of the shim process in a proc directory; "" if the process is
// not a shim.
func shimID(dir string) string {
	f, err := os.Open(filepath.Join(dir, "cmdline"))
	if err != nil {
		return "" // it has exited
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, maxArgs))
	if err != nil {
		return ""
	}
	return idIn(strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00"))
}

func idIn(args []string) string {
	if !strings.HasPrefix(path.Base(args[0]), program) {
		return ""
	}
	for i := range args[:len(args)-1] {
		if args[i] == "-id" {
			return args[i+1]
		}
	}
	return ""
}
