package main

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// tinted is a STATUS as a terminal shows it: green for what is as it should be,
// red for what failed, yellow for what is on its way.
func tinted(status string) string {
	code := "33"
	switch {
	case slices.Contains([]string{"Running", "Completed", "Succeeded", "Ready", "Active", "Bound", "Available"}, status):
		code = "32"
	case failed(status):
		code = "31"
	}
	return "\x1b[" + code + "m" + status + "\x1b[0m"
}

// tintedType is the TYPE of an event as a terminal shows it: a warning is yellow.
func tintedType(kind string) string {
	if kind != v1.EventTypeWarning {
		return kind
	}
	return "\x1b[33m" + kind + "\x1b[0m"
}

// failed says whether a STATUS is of something that is broken.
func failed(status string) bool {
	for _, part := range []string{"Err", "BackOff", "Failed", "OOMKilled", "Evicted", "Lost", "Invalid", "CannotRun", "ExitCode:", "Signal:", "NotReady", "RegistryUnavailable", "DeadlineExceeded"} {
		if strings.Contains(status, part) {
			return true
		}
	}
	return false
}
