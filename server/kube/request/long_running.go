package request

import (
	"net/http"
	"net/url"
	"strings"
)

// IsLongRunning reports whether a request to the Kubernetes API, the kubelet's API
// or podd's own API may last as long as its client is connected.
func IsLongRunning(r *http.Request) bool {
	i, q := Parse(r), r.URL.Query()
	switch firstSegment(r.URL.Path) {
	case "api", "apis":
		return i.OpensStream() || i.Verb == "watch" || i.Verb == "get" && i.Subresource == "log" && BoolParameter(q, "follow") || isLongRunningPath(i.ProxiedPath, q)
	}
	return isLongRunningPath(i.Path, q)
}

// isLongRunningPath works like IsLongRunning for a path of the kubelet's API, podd's own API or the
// status page.
func isLongRunningPath(path string, q url.Values) bool {
	switch firstSegment(path) {
	case "exec", "attach", "portForward", "debug":
		return true
	case "containerLogs":
		return BoolParameter(q, "follow")
	}
	switch path {
	case "/page/state":
		return true
	case "/v1/state", "/v1/events":
		return BoolParameter(q, "watch")
	case "/v1/logs", "/page/logs":
		return BoolParameter(q, "follow")
	}
	return false
}

func firstSegment(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
