package request

import (
	"net/http"
	"strings"
)

// Lasts says of a request, to this API, the kubelet's or podd's own, that it may
// last for as long as who asks stays.
func Lasts(r *http.Request) bool {
	switch first(r.URL.Path) {
	case "api", "apis", "v1":
		i, q := Of(r), r.URL.Query()
		return i.Connects() || lasts(i.Proxied) || Boolean(q, "watch") || Boolean(q, "follow")
	}
	return lasts(r.URL.Path)
}

// lasts says so of a path of the kubelet's API or the page.
func lasts(path string) bool {
	switch first(path) {
	case "exec", "attach", "portForward", "containerLogs", "debug":
		return true
	case "page":
		return path == "/page/state" || path == "/page/logs"
	}
	return false
}

func first(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
