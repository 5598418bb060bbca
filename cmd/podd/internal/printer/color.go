package printer

import (
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// ColorStatus returns a cell of the column STATUS with terminal colors. A success is green, a
// failure is red, and any other status is yellow.
func ColorStatus(status string) string {
	code := "33"
	switch {
	case slices.Contains([]string{"Running", "Completed", "Succeeded", "Ready", "Active", "Bound", "Available"}, status):
		code = "32"
	case isFailure(status):
		code = "31"
	}
	return "\x1b[" + code + "m" + status + "\x1b[0m"
}

// ColorEventType returns the type of an event with terminal colors. The type Warning is yellow,
// and any other type is unchanged.
func ColorEventType(kind string) string {
	if kind != v1.EventTypeWarning {
		return kind
	}
	return "\x1b[33m" + kind + "\x1b[0m"
}

// isFailure reports whether a cell of the column STATUS describes a failure.
func isFailure(status string) bool {
	for _, word := range []string{"Err", "BackOff", "Failed", "OOMKilled", "Evicted", "Lost", "Invalid", "CannotRun", "ExitCode:", "Signal:", "NotReady", "RegistryUnavailable", "DeadlineExceeded"} {
		if strings.Contains(status, word) {
			return true
		}
	}
	return false
}

// SupportsColor reports whether w is a terminal that supports colors (TERM) and the user has
// not disabled colors (NO_COLOR).
func SupportsColor(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
