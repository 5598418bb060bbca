package auth

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"podd/server/kube/request"
)

// Attributes describe a request for authorization: a verb on a resource or, if
// Resource is empty, on a path.
type Attributes struct {
	// Verb is an RBAC verb: get, list, watch, create, update, patch, delete,
	// deletecollection. Only "*" in a rule matches an empty Verb.
	Verb string
	// Group, Resource, Namespace and Name identify the object. Namespace is empty for
	// cluster-scoped resources and for requests of all namespaces. Name is empty for requests of a
	// collection.
	Group, Resource, Namespace, Name string
	// Subresources lists the subresources that authorize the request, the most specific
	// first. Permission for any of them suffices. "" is the resource itself.
	Subresources []string
	// Path is the URL path of a non-resource request.
	Path string
}

// RequestAttributes returns the attributes of a request to the named node. Paths of the Kubernetes
// API are parsed by package request. All other paths belong to the kubelet's API.
//
// The kubelet's paths are subresources of the node, mapped as in the kubelet
// (KubeletFineGrainedAuthz), with one exception. WebSocket clients send a GET to run a process in a
// container. This GET has the verb create, because read permission must not be enough to run
// commands.
func RequestAttributes(r *http.Request, node string) Attributes {
	if !request.IsAPI(r.URL.Path) {
		return nodeAttributes(r.Method, r.URL.Path, node)
	}
	i := request.Parse(r)
	if i.ProxiedPath == "" {
		return resourceAttributes(i)
	}
	// An API server authorizes requests to a node's proxy path with the subresource proxy only.
	// Therefore permission for nodes/proxy is sufficient here for all paths.
	a := nodeAttributes(r.Method, i.ProxiedPath, i.Name)
	if !slices.Contains(a.Subresources, "proxy") {
		a.Subresources = append(a.Subresources, "proxy")
	}
	return a
}

// nodeAttributes returns the attributes of a request for a path of the kubelet's
// API.
func nodeAttributes(method, path, node string) Attributes {
	a := Attributes{Verb: rbacVerb(method), Resource: "nodes", Name: node, Subresources: nodeSubresources(path)}
	if isAction(path) && a.Verb != "" {
		a.Verb = "create"
	}
	return a
}

func resourceAttributes(i request.Info) Attributes {
	if i.Resource == "" {
		return Attributes{Verb: i.Verb, Path: i.Path}
	}
	return Attributes{
		Verb: i.Verb, Group: i.Group, Resource: i.Resource, Namespace: i.Namespace, Name: i.Name,
		Subresources: []string{i.Subresource},
	}
}

// ProxyAuthorizer is an Authorizer that checks requests as a Guard with InCluster set does. Access
// reviews use ProxyAuthorizer, so that they report the permissions that the Guard enforces. A
// subresource of nodes such as nodes/metrics stands for paths of the kubelet's API. Any other
// resource stands for paths of the Kubernetes API. The only difference is the reading of Secrets.
// Guard lets every user with the permission to get nodes/proxy read Secrets, but the response
// contains their data only if MayReadSecret returns true. Allows returns true only if the response
// would contain the data.
type ProxyAuthorizer struct {
	Authorizer
	Node string
}

// Allows implements Authorizer.
func (p ProxyAuthorizer) Allows(ctx context.Context, u User, a Attributes) (bool, error) {
	readsSecrets := a.readsSecrets()
	if readsSecrets && u.IsForwarded {
		return false, nil
	}
	checkedAttributes, ok := a.kubeletAttributes(p.Node)
	if !ok {
		checkedAttributes = a.proxyAttributes(p.Node)
	}
	isAllowed, err := p.Authorizer.Allows(ctx, u, checkedAttributes)
	if err != nil || !isAllowed {
		return false, err
	}
	return !readsSecrets || p.MayReadSecret(ctx, u, a.Namespace, a.Name), nil
}

// MayReadSecret reports whether u may read the data of a Secret that comes from the node's own
// manifests. An empty name means every Secret of the namespace. Permission to get nodes/proxy is
// not sufficient, because users need the same permission to read pods and metrics. If the
// Authorizer fails, MayReadSecret returns true only for root, so that podd's own socket works while
// the cluster is unreachable.
func (p ProxyAuthorizer) MayReadSecret(ctx context.Context, u User, namespace, name string) bool {
	if u.isRoot() {
		return true
	}
	for _, a := range []Attributes{
		{Verb: "create", Resource: "nodes", Name: p.Node, Subresources: []string{"proxy"}},
		{Verb: "get", Resource: "secrets", Namespace: namespace, Name: name, Subresources: []string{""}},
	} {
		if isAllowed, err := p.Authorizer.Allows(ctx, u, a); err == nil && isAllowed {
			return true
		}
	}
	return false
}

// proxyAttributes returns the attributes that a cluster's API server checks before it proxies the
// request to the node. Three kinds of requests keep their own attributes: impersonation, requests
// that WriteAuthorizer reserves for root, and requests for paths that are not resources. Responses
// for such paths, for example /version, contain nothing about pods.
func (a Attributes) proxyAttributes(node string) Attributes {
	if a.Resource == "" || a.Verb == impersonateVerb || a.needsRoot() {
		return a
	}
	verb := a.Verb
	if verb == "list" || verb == "watch" {
		verb = "get"
	}
	return Attributes{Verb: verb, Resource: "nodes", Name: node, Subresources: []string{"proxy"}}
}

// kubeletAttributes converts the attributes of a subresource of nodes, such as nodes/metrics, to
// the attributes that Guard checks for requests to the kubelet's API. If the subresource belongs to
// several paths of that API, the result allows only what Guard allows for each of these paths. ok
// is false for all other attributes. If a.Name is empty, the result contains the name in the
// parameter node, because a Guard serves no other node.
func (a Attributes) kubeletAttributes(node string) (result Attributes, ok bool) {
	if a.Group != "" || a.Resource != "nodes" || len(a.Subresources) != 1 {
		return Attributes{}, false
	}
	var alternatives []string // permission for any one of these subresources is sufficient for all paths of a.Subresources[0]
	for _, p := range pathSubresources {
		switch {
		case p.subresource != a.Subresources[0]:
		case p.noProxy || len(alternatives) == 1:
			alternatives = []string{p.subresource}
		default:
			alternatives = []string{p.subresource, "proxy"}
		}
	}
	return Attributes{Verb: a.Verb, Resource: a.Resource, Name: cmp.Or(a.Name, node), Subresources: alternatives}, alternatives != nil
}

// rbacVerb returns the RBAC verb for an HTTP method, or "" if there is no such verb.
func rbacVerb(method string) string {
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

// pathSubresources lists the paths of the kubelet's API that have their own subresource of nodes.
// If noProxy is set, permission for nodes/proxy does not include the path.
var pathSubresources = []struct {
	path, subresource string
	noProxy           bool
}{
	{"/stats", "stats", true},
	{"/metrics", "metrics", true},
	{"/logs", "log", true},
	{"/checkpoint", "checkpoint", true},
	{"/statusz", "statusz", true},
	{"/flagz", "configz", true},
	{"/spec", "spec", false},
	{"/pods", "pods", false},
	{"/runningpods", "pods", false},
	{"/healthz", "healthz", false},
	{"/livez", "healthz", false},
	{"/readyz", "healthz", false},
	{"/configz", "configz", false},
}

// nodeSubresources returns the subresources of a node that authorize a request for a path of
// the kubelet's API; see Attributes.Subresources.
func nodeSubresources(path string) []string {
	for _, f := range pathSubresources {
		switch {
		case !isWithin(path, f.path):
		case f.noProxy:
			return []string{f.subresource}
		default:
			return []string{f.subresource, "proxy"}
		}
	}
	return []string{"proxy"}
}

// isAction reports whether a request for path runs a process in a container, connects to a
// container or creates a checkpoint.
func isAction(path string) bool {
	for _, p := range []string{"/exec", "/attach", "/portForward", "/run", "/checkpoint"} {
		if isWithin(path, p) {
			return true
		}
	}
	return false
}

// isWithin reports whether path is root or below root.
func isWithin(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
