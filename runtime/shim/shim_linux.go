// Package shim ends the process that containerd keeps beside a sandbox, where
// containerd itself has lost track of what is in it.
//
// When the caller of StartContainer leaves in the middle, as a podd that is
// killed does, containerd (1.6 to 2.4 at least) can fail to note a task that
// its shim has made: "failed to get task pid: context canceled". The container
// is exited then, and neither it nor its sandbox can ever be removed: "cannot
// delete running task". No call ends such a task. When the shim is gone,
// containerd cleans up behind it.
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

// program is how the names of containerd's shims begin.
const program = "containerd-shim"

// End kills the shim of a sandbox and tells whether there was one. All that
// still runs in the sandbox loses its keeper: it must have been stopped.
func End(sandboxID string) (found bool, err error) { return end("/proc", sandboxID) }

func end(proc, sandboxID string) (found bool, err error) {
	if sandboxID == "" {
		return false, nil
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return false, fmt.Errorf("looking for the shim of sandbox %s: %w", sandboxID, err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		is := func() bool { return shimID(filepath.Join(proc, e.Name())) == sandboxID }
		if err != nil || !is() {
			continue
		}
		if err := endIf(pid, is); err != nil {
			return true, fmt.Errorf("ending the shim of sandbox %s: %w", sandboxID, err)
		}
		found = true
	}
	return found, nil
}

// endIf kills a process that is what it was taken for, through a descriptor of
// it, so that a later one with the same pid is safe. One that has ended is nil.
func endIf(pid int, is func() bool) error {
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

// maxArgs bounds what is read of a command line: a shim's is short.
const maxArgs = 64 << 10

// shimID is the sandbox that the process of a proc directory is the shim of; ""
// when it is none.
func shimID(dir string) string {
	f, err := os.Open(filepath.Join(dir, "cmdline"))
	if err != nil {
		return "" // it has ended
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
