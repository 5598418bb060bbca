package server

import (
	"net/http"
	"slices"
	"strings"
)

// Debugging lists the paths that a kubelet reports as disabled on its read-only
// port, or if enableDebuggingHandlers is false.
var Debugging = []string{"/attach/", "/containerLogs/", "/debug/pprof/", "/exec/", "/logs/", "/portForward/", "/run/", "/runningpods/"}

// DebuggingDisabled responds like a kubelet to requests for these paths.
var DebuggingDisabled = Disabled("Debug endpoints are")

// Disabled returns a handler that responds like a kubelet that an endpoint is
// disabled.
func Disabled(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, what+" disabled.", http.StatusMethodNotAllowed)
	}
}

func isDebugPath(path string) bool {
	return slices.ContainsFunc(Debugging, func(below string) bool {
		return path == strings.TrimSuffix(below, "/") || strings.HasPrefix(path, below)
	})
}
