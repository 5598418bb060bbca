package server

import (
	"net/http"
	"slices"
	"strings"
)

// DebugPaths lists the paths that a kubelet reports as disabled on its read-only port,
// and on its main port if enableDebuggingHandlers is false.
var DebugPaths = []string{"/attach/", "/containerLogs/", "/debug/pprof/", "/exec/", "/logs/", "/portForward/", "/run/", "/runningpods/"}

// DebuggingDisabledHandler responds to requests for DebugPaths if they are disabled.
var DebuggingDisabledHandler = DisabledHandler("Debug endpoints are")

// DisabledHandler returns a handler that responds with the kubelet's message for a disabled
// endpoint, "<subject> disabled.". subject includes the verb, such as "logs endpoint is".
func DisabledHandler(subject string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, subject+" disabled.", http.StatusMethodNotAllowed)
	}
}

func isDebugPath(path string) bool {
	return slices.ContainsFunc(DebugPaths, func(below string) bool {
		return path == strings.TrimSuffix(below, "/") || strings.HasPrefix(path, below)
	})
}
