package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// EndOrphan kills a process of a pod that the runtime has lost track of, and its shim, if
// there is one. Both can remain if the caller of the runtime was killed. still reports
// whether the process is the expected one. It is called after a descriptor of the process
// was opened, so the pid cannot be reused. It is not an error if the process has exited.
func EndOrphan(pid int, still func() bool) error {
	above := 0
	err := killIf(pid, func() bool {
		parent, err := parentOf(pid)
		if err != nil || !still() {
			return false
		}
		above = parent
		return true
	})
	if err == nil && above != 0 {
		err = killIf(above, func() bool { return shimID(filepath.Join("/proc", strconv.Itoa(above))) != "" })
	}
	if err != nil {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}

// parentOf parses the parent in /proc/<pid>/stat. It follows the name, which may contain
// any characters.
func parentOf(pid int) (int, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text[max(strings.LastIndexByte(string(text), ')'), 0):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the parent of process %d: %q", pid, text)
	}
	return strconv.Atoi(fields[1])
}
