package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// KillOrphan kills a pod's process that the runtime has lost track of. If the parent of the
// process is a containerd shim, it kills the shim, too. Such processes remain if the
// runtime's client was killed during a call.
//
// isExpected reports whether the process with the ID pid belongs to the pod. KillOrphan
// calls isExpected after opening a descriptor of the process, so that the pid cannot be
// reused between the check and the kill. If isExpected returns false or the process has
// exited, KillOrphan returns nil.
func KillOrphan(pid int, isExpected func() bool) error {
	shim := 0
	err := killIf(pid, func() bool {
		parent, err := parentPID(pid)
		if err != nil || !isExpected() {
			return false
		}
		shim = parent
		return true
	})
	if err == nil && shim != 0 {
		err = killIf(shim, func() bool { return shimSandbox(filepath.Join("/proc", strconv.Itoa(shim))) != "" })
	}
	if err != nil {
		return fmt.Errorf("killing the orphaned container process %d: %w", pid, err)
	}
	return nil
}

// parentPID reads the process ID of the parent of a process from /proc/<pid>/stat. The parent's pid
// is the second field after the process name, which is in parentheses and may contain any
// characters.
func parentPID(pid int) (int, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text[max(strings.LastIndexByte(string(text), ')'), 0):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the parent of process %d from /proc/%[1]d/stat: malformed content %[2]q", pid, text)
	}
	return strconv.Atoi(fields[1])
}
