package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"podd/server/kube/request"
)

// Attributes are what a request is for: something of a resource or, with an empty
// Resource, a path.
type Attributes struct {
	// Verb is RBAC's: get, list, watch, create, update, patch, delete,
	// deletecollection; "" matches only "*".
	Verb string
	// Group, Resource, Namespace and Name say of what; what is in no namespace
	// has none, what is all of a kind no name.
	Group, Resource, Namespace, Name string
	// Subresources are those of the resource by any of which it may be done, the
	// finest first; "" is the resource itself.
	Subresources []string
	// Path is what is asked for that is no resource.
	Path string
}

// Of tells what r asks of a node: of the Kubernetes API there, as package
// request reads it, or of the kubelet's.
//
// The kubelet's paths are subresources of the node as the kubelet maps them
// (KubeletFineGrainedAuthz). Otherwise than there, a GET that runs something in
// a container, as WebSockets need, is "create": to be allowed to look is not to
// be allowed to do.
func Of(r *http.Request, node string) Attributes {
	if !request.Is(r.URL.Path) {
		return ofNode(r.Method, r.URL.Path, node)
	}
	i := request.Of(r)
	if i.Proxied == "" {
		return ofInfo(i)
	}
	// By this way a cluster knows but one subresource, so that one always does.
	a := ofNode(r.Method, i.Proxied, i.Name)
	if !slices.Contains(a.Subresources, "proxy") {
		a.Subresources = append(a.Subresources, "proxy")
	}
	return a
}

// ofNode is what a path of the kubelet's is for.
func ofNode(method, path, node string) Attributes {
	a := Attributes{Verb: verb(method), Resource: "nodes", Name: node, Subresources: subresources(path)}
	if acts(path) && a.Verb != "" {
		a.Verb = "create"
	}
	return a
}

func ofInfo(i request.Info) Attributes {
	if i.Resource == "" {
		return Attributes{Verb: i.Verb, Path: i.Path}
	}
	return Attributes{
		Verb: i.Verb, Group: i.Group, Resource: i.Resource, Namespace: i.Namespace, Name: i.Name,
		Subresources: []string{i.Subresource},
	}
}

// Proxied says of the Kubernetes API what Guard does with OfCluster, for whoever
// asks what they may there.
type Proxied struct {
	Authorizer
	Node string
}

// Allows implements Authorizer.
func (p Proxied) Allows(ctx context.Context, u User, a Attributes) (bool, error) {
	return p.Authorizer.Allows(ctx, u, a.proxied(p.Node))
}

// proxied is what one who asks the same by way of a cluster's API server needs.
// What is no resource, as the versions that are served, tells nothing of pods; what
// writes stays what it is, for Writes to see.
func (a Attributes) proxied(node string) Attributes {
	if a.Resource == "" || a.writes() {
		return a
	}
	verb := a.Verb
	if verb == "list" || verb == "watch" {
		verb = "get"
	}
	return Attributes{Verb: verb, Resource: "nodes", Name: node, Subresources: []string{"proxy"}}
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
	{"/flagz", "configz", true},
	{"/pods", "pods", false},
	{"/runningpods", "pods", false},
	{"/healthz", "healthz", false},
	{"/livez", "healthz", false},
	{"/readyz", "healthz", false},
	{"/configz", "configz", false},
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
