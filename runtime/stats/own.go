package stats

import (
	"os"
	"strings"
)

// OwnCgroup is the cgroup of this process; "" when it is not told.
func OwnCgroup() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return ownCgroup(string(text))
}

// ownCgroup reads /proc/<pid>/cgroup, lines of "4:memory:/a/b": the line of the
// memory controller, or the one of version 2, "0::/a/b", where that is the only
// one.
func ownCgroup(text string) string {
	alone := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "memory":
			return parts[2]
		case parts[1] == "":
			alone = parts[2]
		}
	}
	return alone
}
