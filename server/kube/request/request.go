// Package request tells what a request to a Kubernetes API is for, by its
// method, path and query. It is pure: who authorizes a request and who serves
// it read the same.
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

// Info is what a request is for: something of a resource, or, with an empty
// Resource, a path.
type Info struct {
	// Verb is RBAC's: get, list, watch, create, update, patch, delete,
	// deletecollection; for a path the method in lower case. "" for a method
	// that means nothing here.
	Verb string
	// Path is the request's, without a slash at its end.
	Path                string
	Group, Version      string
	Namespace, Resource string
	Name, Subresource   string
	// Rest is what follows the subresource, or makes no sense; "" for nothing.
	Rest string
	// Proxied is the path on the node itself that is asked for by way of the
	// subresource proxy; "" for none.
	Proxied string
}

// roots are the paths that the API is below.
var roots = []string{"/api", "/apis", "/version", "/openapi"}

// Is says whether a path is one of the API.
func Is(path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

// Of tells what r is for, as far as its path can be read: one that is malformed
// is no resource's.
func Of(r *http.Request) Info {
	path := r.URL.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	i := Info{Path: path, Verb: strings.ToLower(r.Method)}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if slices.ContainsFunc(parts, func(s string) bool { return s == "" || s == "." || s == ".." }) {
		return i
	}
	plain := i
	switch {
	case parts[0] == "api" && len(parts) > 2:
		i.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		i.Group, i.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return i
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] == "namespaces" {
		return plain // they are in none: who may all in one may not list them
	}
	i.resource(parts)
	i.Verb = i.verb(r.Method, r.URL.Query())
	if i.Group == "" && i.Namespace == "" && i.Resource == "nodes" && i.Subresource == "proxy" {
		i.Proxied = cmp.Or(strings.TrimPrefix(r.URL.Path, "/api/"+i.Version+"/nodes/"+i.Name+"/proxy"), "/")
	}
	return i
}

// resource reads [namespaces/<namespace>/]<resource>[/<name>[/<subresource>]].
func (i *Info) resource(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(ofNamespaces, parts[2]) {
			parts = parts[2:]
		}
	}
	i.Resource = parts[0]
	for n, to := range []*string{&i.Name, &i.Subresource} {
		if len(parts) > n+1 {
			*to = parts[n+1]
		}
	}
	if len(parts) > 3 {
		i.Rest = strings.Join(parts[3:], "/")
	}
}

// ofNamespaces are the subresources of a namespace itself.
var ofNamespaces = []string{"status", "finalize"}

func (i *Info) verb(method string, q url.Values) string {
	if i.Connects() && (method == http.MethodGet || method == http.MethodPost) {
		return "create" // to be allowed to look is not to be allowed to do
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		if i.Name != "" {
			return "get"
		}
		i.Name = named(q)
		if Boolean(q, "watch") {
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
		i.Name = named(q)
		return "deletecollection"
	}
	return ""
}

// Connects says that it is for a stream into a pod.
func (i *Info) Connects() bool {
	return i.Group == "" && i.Resource == "pods" && slices.Contains([]string{"exec", "attach", "portforward"}, i.Subresource)
}

// named is the one name that a list is asked for, by a selector of fields.
func named(q url.Values) string {
	s, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	return name
}

// Boolean is a parameter as Kubernetes reads it: there, and neither false nor 0.
func Boolean(q url.Values, name string) bool {
	s := q.Get(name)
	return q.Has(name) && !strings.EqualFold(s, "false") && s != "0"
}

// Include is how much of each object the rows of a table are to hold.
func Include(r *http.Request) metav1.IncludeObjectPolicy {
	switch p := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")); p {
	case metav1.IncludeNone, metav1.IncludeObject:
		return p
	}
	return metav1.IncludeMetadata
}
