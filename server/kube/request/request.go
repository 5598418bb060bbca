// Package request parses requests to a Kubernetes API. It determines the verb and the resource from
// the method, path and query, and the representation of objects from the headers. Package auth and
// the handlers both use it, so that they interpret a request in the same way.
package request

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Info describes a request: a verb on a resource or, if Resource is empty, on a
// path.
type Info struct {
	// Verb is an RBAC verb: get, list, watch, create, update, patch, delete or
	// deletecollection. For a path that is not a resource, Verb is the method in lower
	// case. It is "" if a resource does not support the method.
	Verb string
	// Path is the path of the request without a trailing slash.
	Path                string
	Group, Version      string
	Namespace, Resource string
	Name, Subresource   string
	// RemainingPath is the part of the path after the subresource; "" if there is none. Only the
	// subresource "proxy" supports a remaining path.
	RemainingPath string
	// ProxiedPath is the path of the kubelet's API in a request to the node's subresource proxy; ""
	// for other requests.
	ProxiedPath string
}

// apiRoots are the first elements of the API's paths.
var apiRoots = []string{"/api", "/apis", "/version", "/openapi"}

// IsAPI reports whether path is a path of the Kubernetes API.
func IsAPI(path string) bool {
	return slices.ContainsFunc(apiRoots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

// Parse returns the Info of r. A malformed path has no Resource.
func Parse(r *http.Request) Info {
	path := r.URL.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	i := Info{Path: path, Verb: strings.ToLower(r.Method)}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if slices.ContainsFunc(parts, func(s string) bool { return s == "" || s == "." || s == ".." }) {
		return i
	}
	nonResource := i
	switch {
	case parts[0] == "api" && len(parts) > 2:
		i.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		i.Group, i.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return i
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] == "namespaces" {
		return nonResource // A list of namespaces is not a request in one namespace, because permission for all resources of a namespace must not include listing namespaces.
	}
	i.parseResource(parts)
	i.Verb = i.parseVerb(r.Method, r.URL.Query())
	if i.Group == "" && i.Namespace == "" && i.Resource == "nodes" && i.Subresource == "proxy" {
		i.ProxiedPath = cmp.Or(strings.TrimPrefix(r.URL.Path, "/api/"+i.Version+"/nodes/"+i.Name+"/proxy"), "/")
	}
	return i
}

// parseResource parses [namespaces/<namespace>/]<resource>[/<name>[/<subresource>]].
func (i *Info) parseResource(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(namespaceSubresources, parts[2]) {
			parts = parts[2:]
		}
	}
	i.Resource = parts[0]
	for n, field := range []*string{&i.Name, &i.Subresource} {
		if len(parts) > n+1 {
			*field = parts[n+1]
		}
	}
	if len(parts) > 3 {
		i.RemainingPath = strings.Join(parts[3:], "/")
	}
}

// namespaceSubresources are the subresources of a namespace itself.
var namespaceSubresources = []string{"status", "finalize"}

func (i *Info) parseVerb(method string, q url.Values) string {
	if i.OpensStream() && (method == http.MethodGet || method == http.MethodPost) {
		return "create" // not get, because permission to read must not include permission to run commands
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		if i.Name != "" {
			return "get"
		}
		i.Name = selectedName(q)
		if BoolParameter(q, "watch") {
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if i.Name != "" {
			return "delete"
		}
		i.Name = selectedName(q)
		return "deletecollection"
	}
	return ""
}

// OpensStream reports whether the request opens a stream to a pod.
func (i *Info) OpensStream() bool {
	return i.Group == "" && i.Resource == "pods" && slices.Contains([]string{"exec", "attach", "portforward"}, i.Subresource)
}

// selectedName returns the name that a field selector requires, or "" if it
// requires none.
func selectedName(q url.Values) string {
	s, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	return name
}

// BoolParameter returns the value of a boolean parameter as an API server parses it. The value is
// true unless the parameter is missing, "false" or "0".
func BoolParameter(q url.Values, name string) bool {
	s := q.Get(name)
	return q.Has(name) && !strings.EqualFold(s, "false") && s != "0"
}

// IncludePolicy returns the includeObject parameter, which selects how much of each object the rows
// of a table include.
func IncludePolicy(r *http.Request) metav1.IncludeObjectPolicy {
	switch p := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")); p {
	case metav1.IncludeNone, metav1.IncludeObject:
		return p
	}
	return metav1.IncludeMetadata
}
