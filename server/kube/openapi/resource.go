package openapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is what is served below one path of a group version.
type Resource struct {
	Kind schema.GroupVersionKind
	// Object is a pointer to a value of the kind's Go type, &v1.Pod{}.
	Object     any
	Plural     string // "pods"
	Namespaced bool
	// Verbs are those of discovery: get, list, watch, create, update, patch,
	// delete, deletecollection.
	Verbs        []string
	Subresources []Subresource
}

// Subresource is served below a resource's name.
type Subresource struct {
	Name string // "status"
	Kind schema.GroupVersionKind
	// Object is what is read and written; nil: plain text or a stream.
	Object any
	// Options has the query parameters of reading it, &v1.PodLogOptions{}; may
	// be nil.
	Options any
	Verbs   []string // get, create, update, patch
}

func (r *Resource) has(verb string) bool    { return slices.Contains(r.Verbs, verb) }
func (s *Subresource) has(verb string) bool { return slices.Contains(s.Verbs, verb) }

// root is where a group version is served: "api/v1", "apis/apps/v1".
func root(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}
