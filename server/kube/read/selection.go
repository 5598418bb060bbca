package read

import (
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"podd/server"
	"podd/server/kube/resource"
)

// A selection selects the objects of a request.
type selection struct {
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
	resource  *resource.Definition
}

// parseSelection parses the label and field selectors of a query. It returns an error for an
// unsupported field, because ignoring the field would select all objects.
func parseSelection(res *resource.Definition, namespace string, q url.Values) (selection, error) {
	s := selection{namespace: namespace, resource: res}
	if res.Name == "namespaces" {
		s.namespace = ""
	}
	var err error
	if s.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	if s.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	supportedFields := res.Fields(res.NewObject())
	for _, r := range s.fields.Requirements() {
		if !supportedFields.Has(r.Field) {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %.80s", r.Field))
		}
	}
	return s, nil
}

// matches reports whether an object is selected.
func (s *selection) matches(o server.Object) bool {
	return (s.namespace == "" || o.GetNamespace() == s.namespace) && s.labels.Matches(labels.Set(o.GetLabels())) &&
		(s.fields.Empty() || s.fields.Matches(s.resource.Fields(o)))
}
