package openapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource describes a resource of one group version.
type Resource struct {
	Kind schema.GroupVersionKind
	// Object is a pointer to a value of the kind's Go type, such as &v1.Pod{}.
	Object     any
	Plural     string // plural name, such as "pods"
	Namespaced bool
	// Verbs are the verbs of discovery: get, list, watch, create, update, patch,
	// delete, deletecollection.
	Verbs        []string
	Subresources []Subresource
}

// Subresource describes one subresource of a Resource.
type Subresource struct {
	Name string // such as "status"
	Kind schema.GroupVersionKind
	// Object is the type that is read and written; nil for plain text or a stream.
	Object any
	// Options is a struct with fields that are the query parameters of a read request, such
	// as &v1.PodLogOptions{}. It may be nil.
	Options any
	Verbs   []string // get, create, update, patch
}

func (r *Resource) hasVerb(verb string) bool    { return slices.Contains(r.Verbs, verb) }
func (s *Subresource) hasVerb(verb string) bool { return slices.Contains(s.Verbs, verb) }

// groupVersionPath returns the path of a group version, such as "api/v1" or "apis/apps/v1".
func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}
