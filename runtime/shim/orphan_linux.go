package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EndOrphan kills a process of a pod that the runtime knows nothing of any more,
// and the shim above it, if there is one: a call whose caller was killed can
// leave both. still tells whether the process is what it was taken for; it is
// asked once nothing else can have its pid. A process that has ended is nil.
func EndOrphan(pid int, still func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	parent, err := parentOf(pid)
	if err != nil || !still() {
		return nil // it has ended
	}
	return errors.Join(endShim(parent), endProcess(fd, pid))
}

// endShim kills a process if it is a shim, through a descriptor of it.
func endShim(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if len(shimID(filepath.Join("/proc", strconv.Itoa(pid)))) == 0 {
		return nil
	}
	return endProcess(fd, pid)
}

func endProcess(fd, pid int) error {
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
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
