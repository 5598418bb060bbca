package reservation

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// An Owner is a process. Its start time distinguishes the process from a later process with the
// same PID.
type Owner struct {
	PID     int
	Started string // field 22 of /proc/<pid>/stat
}

// startTimeField is the index of the start time, field 22, in the result of statFields.
const startTimeField = 22 - 3

// CurrentProcess returns the calling process.
func CurrentProcess() (Owner, error) { return FindProcess(os.Getpid()) }

// FindProcess returns the process with the given process ID.
func FindProcess(pid int) (Owner, error) {
	fields, err := statFields(pid)
	if err != nil {
		return Owner{}, err
	}
	return Owner{PID: pid, Started: fields[startTimeField]}, nil
}

// IsAlive reports whether the process exists and is not a zombie.
func (o Owner) IsAlive() bool {
	fields, err := statFields(o.PID)
	return err == nil && fields[0] != "Z" && fields[startTimeField] == o.Started
}

// Parent returns the process ID of the process's parent, or 0 if the process has exited.
func (o Owner) Parent() int {
	fields, err := statFields(o.PID)
	if err != nil || fields[startTimeField] != o.Started {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// statFields returns the fields of /proc/<pid>/stat after the command name, which may contain
// spaces and parentheses. The first returned field is field 3, the state.
func statFields(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("reading /proc/%d/stat: unexpected content %q", pid, data)
	}
	return fields, nil
}
