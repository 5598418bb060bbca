package stats

import (
	"os"
	"path/filepath"
	"strings"
)

// OwnCgroup returns the path of this process's cgroup, or "" if it is unknown.
func OwnCgroup() string { return readCgroupPath("self") }

// readCgroupPath returns the path of the cgroup of a process, or "" if it is unknown. pid is a PID or
// "self".
func readCgroupPath(pid string) string {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	if err != nil {
		return ""
	}
	return parseCgroupPath(string(text))
}

// parseCgroupPath parses /proc/<pid>/cgroup, which has lines like "4:memory:/a/b". It returns the
// path of the memory controller. If there is no such line, it returns the path of cgroup
// version 2, "0::/a/b".
func parseCgroupPath(text string) string {
	v2Path := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "memory":
			return parts[2]
		case parts[1] == "":
			v2Path = parts[2]
		}
	}
	return v2Path
}
