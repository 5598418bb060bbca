package auth

import (
	"net/http"
	"strings"
)

// Attributes are what a request is for.
type Attributes struct {
	// Verb is RBAC's: get, create, update, patch, delete; "" matches only "*".
	Verb string
	// Subresources of nodes; who may one of them may. The finest is first.
	Subresources []string
	// Node is the node's name.
	Node string
}

// Of tells what r asks of the kubelet API of a node, by the method and the path
// as the kubelet maps them (KubeletFineGrainedAuthz). Otherwise than there, a
// GET that runs something in a container, as WebSockets need, is "create": to
// be allowed to look is not to be allowed to do.
func Of(r *http.Request, node string) Attributes {
	a := Attributes{Verb: verb(r.Method), Subresources: subresources(r.URL.Path), Node: node}
	if acts(r.URL.Path) && a.Verb != "" {
		a.Verb = "create"
	}
	return a
}

func verb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// finer are the paths with a subresource of their own. only says that
// nodes/proxy does not do.
var finer = []struct {
	path, subresource string
	only              bool
}{
	{"/stats", "stats", true},
	{"/metrics", "metrics", true},
	{"/logs", "log", true},
	{"/checkpoint", "checkpoint", true},
	{"/statusz", "statusz", true},
	{"/pods", "pods", false},
	{"/runningpods", "pods", false},
	{"/healthz", "healthz", false},
	{"/configz", "configz", false},
	{"/flagz", "configz", false},
}

func subresources(path string) []string {
	for _, f := range finer {
		switch {
		case !within(path, f.path):
		case f.only:
			return []string{f.subresource}
		default:
			return []string{f.subresource, "proxy"}
		}
	}
	return []string{"proxy"}
}

// acts says whether what is behind a path runs something in a container or
// changes something.
func acts(path string) bool {
	for _, p := range []string{"/exec", "/attach", "/portForward", "/run", "/checkpoint"} {
		if within(path, p) {
			return true
		}
	}
	return false
}

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
