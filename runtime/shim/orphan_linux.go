package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// EndOrphan kills a process of a pod that the runtime knows nothing of any more,
// and the shim above it, if there is one: a call whose caller was killed can
// leave both. still tells whether the process is what it was taken for; it is
// asked once nothing else can have its pid. A process that has ended is nil.
func EndOrphan(pid int, still func() bool) error {
	above := 0
	err := endIf(pid, func() bool {
		parent, err := parentOf(pid)
		if err != nil || !still() {
			return false
		}
		above = parent
		return true
	})
	if err == nil && above != 0 {
		err = endIf(above, func() bool { return shimID(filepath.Join("/proc", strconv.Itoa(above))) != "" })
	}
	if err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	return nil
}

// parentOf reads the parent off /proc/<pid>/stat, behind the name, which may
// hold anything.
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
