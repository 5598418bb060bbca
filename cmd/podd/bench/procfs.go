package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// memory is the memory of a process in bytes.
type memory struct {
	resident  float64 // RSS: anonymous memory and pages of files
	anonymous float64 // RssAnon, which the kernel cannot reclaim without swap
	peak      float64 // maximum of the RSS since the start of the process
}

// readMemory reads the memory of a process from /proc.
func readMemory(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for line := range strings.Lines(string(text)) {
		for name, to := range map[string]*float64{"VmRSS:": &m.resident, "RssAnon:": &m.anonymous, "VmHWM:": &m.peak} {
			value, ok := strings.CutPrefix(line, name)
			if !ok {
				continue
			}
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				return m, fmt.Errorf("reading the memory of process %d: %w", pid, err)
			}
			*to = kib * 1024
		}
	}
	return m, nil
}

// cpuTime returns the processor time of all threads of a process. It reads the process's CPU
// clock with its resolution of nanoseconds, because the resolution of /proc is 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED for a whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// measureCPU returns a function that returns, in seconds, the processor time that a process has used
// since measureCPU was called. The function returns 0 if the process has exited.
func measureCPU(pid int) func() float64 {
	startCPU, _ := cpuTime(pid)
	return func() float64 {
		endCPU, err := cpuTime(pid)
		if err != nil {
			return 0
		}
		return (endCPU - startCPU).Seconds()
	}
}
