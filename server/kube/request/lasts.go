package request

import (
	"net/http"
	"net/url"
	"strings"
)

// Lasts says of a request, to this API, the kubelet's or podd's own, that it may
// last for as long as who asks stays.
func Lasts(r *http.Request) bool {
	i, q := Of(r), r.URL.Query()
	switch first(r.URL.Path) {
	case "api", "apis":
		return i.Connects() || i.Verb == "watch" || i.Verb == "get" && i.Subresource == "log" && Boolean(q, "follow") || lasts(i.Proxied, q)
	}
	return lasts(i.Path, q)
}

// lasts says so of a path of the kubelet's API, podd's own or the page.
func lasts(path string, q url.Values) bool {
	switch first(path) {
	case "exec", "attach", "portForward", "debug":
		return true
	case "containerLogs":
		return Boolean(q, "follow")
	}
	switch path {
	case "/page/state":
		return true
	case "/v1/state", "/v1/events":
		return Boolean(q, "watch")
	case "/v1/logs", "/page/logs":
		return Boolean(q, "follow")
	}
	return false
}

func first(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
