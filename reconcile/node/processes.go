package node

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadMaxPids returns the maximum number of processes and threads that the kernel allows, or 0 if
// it is unknown.
func ReadMaxPids() int64 {
	limit := int64(math.MaxInt64)
	for _, name := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile(filepath.Join("/proc/sys/kernel", name))
		n, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || parseErr != nil {
			return 0
		}
		limit = min(limit, n)
	}
	return limit
}

// CountProcesses returns the number of processes and threads on the host, or 0 if the number is
// unknown.
func CountProcesses() int64 { return countProcesses("/proc/loadavg") }

// countProcesses implements CountProcesses. path is /proc/loadavg, which contains a line such as
// "0.20 0.18 0.12 1/80 11206". The number of processes and threads follows the slash.
func countProcesses(path string) int64 {
	text, err := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 0
	}
	_, total, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.ParseInt(total, 10, 64)
	return n
}
