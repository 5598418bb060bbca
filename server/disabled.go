package server

import (
	"net/http"
	"slices"
	"strings"
)

// Debugging are the paths that a kubelet without enableDebuggingHandlers says to
// be disabled, as it does on its read-only port.
var Debugging = []string{"/attach/", "/containerLogs/", "/debug/pprof/", "/exec/", "/logs/", "/portForward/", "/run/", "/runningpods/"}

// DebuggingDisabled is what it says of them.
var DebuggingDisabled = Disabled("Debug endpoints are")

// Disabled answers in the kubelet's words that what is asked for is switched off.
func Disabled(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, what+" disabled.", http.StatusMethodNotAllowed)
	}
}

func debugs(path string) bool {
	return slices.ContainsFunc(Debugging, func(below string) bool {
		return path == strings.TrimSuffix(below, "/") || strings.HasPrefix(path, below)
	})
}
