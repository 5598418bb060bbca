// Package managed keeps who set which field of an object, as an apiserver does in
// metadata.managedFields, and merges what a client applies by that:
//
//	Update   another object came in: what differs is the manager's from now on
//	Apply    a configuration came in: its fields are set, those are removed that
//	         the manager set before and leaves out, and what another manager has set
//	         otherwise is a conflict, unless it is forced
//
// How lists and maps are merged is read from the models of package openapi, once,
// when the first object is written: who writes none pays nothing.
//
// Fields may be used concurrently.
package managed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"podd/server"
	"podd/server/kube/openapi"
)

// Fields knows the fields of some kinds.
type Fields struct {
	converter func() (managedfields.TypeConverter, error)
}

// New knows those of kinds, none of which may change.
func New(kinds func() []openapi.Resource) *Fields {
	return &Fields{sync.OnceValues(func() (managedfields.TypeConverter, error) { return converter(kinds()) })}
}

// Change is one by which fields come to be somebody's.
type Change struct {
	// Live is the object as it is, with defaults; one without UID and anything but
	// its kind is not there yet.
	Live    server.Object
	Manager string
	// Subresource is the one that is written, "" for the object itself.
	Subresource string
}

// Update returns whose the fields are once next, with defaults, takes the place of
// the live object. What next says of managers counts where it can be read: a client
// may take itself from the list. None are told of an object nobody is known to
// manage.
func (f *Fields) Update(c Change, next server.Object) ([]metav1.ManagedFieldsEntry, error) {
	m, err := f.manager(c)
	if err != nil {
		return nil, err
	}
	o, err := m.Update(c.live(), next.DeepCopyObject(), c.Manager)
	if err != nil {
		return nil, fmt.Errorf("telling whose the fields of %q are: %w", next.GetName(), err)
	}
	return o.(server.Object).GetManagedFields(), nil
}

// Apply returns what a configuration makes of the live object, as JSON, and whose
// its fields are then.
func (f *Fields) Apply(c Change, configuration map[string]any, force bool) ([]byte, []metav1.ManagedFieldsEntry, error) {
	m, err := f.manager(c)
	if err != nil {
		return nil, nil, err
	}
	o, err := m.Apply(c.live(), &unstructured.Unstructured{Object: configuration}, c.Manager, force)
	if err != nil {
		return nil, nil, badConfiguration(err)
	}
	accessor := o.(metav1.Object)
	fields := accessor.GetManagedFields()
	accessor.SetManagedFields(nil)
	text, err := json.Marshal(o)
	return text, fields, err
}

// live is the object, of which what its file says of managers is left out where
// somebody made it unreadable.
func (c Change) live() runtime.Object {
	o := c.Live.DeepCopyObject().(server.Object)
	if managedfields.ValidateManagedFields(o.GetManagedFields()) != nil {
		o.SetManagedFields(nil)
	}
	return o
}

// badConfiguration: what is no answer of its own is a field that nobody knows, or
// twice the same in a list.
func badConfiguration(err error) error {
	if api := apierrors.APIStatus(nil); errors.As(err, &api) {
		return err
	}
	return &server.Error{Status: http.StatusBadRequest, Message: err.Error()}
}

func (f *Fields) manager(c Change) (*managedfields.FieldManager, error) {
	convert, err := f.converter()
	if err != nil {
		return nil, err
	}
	gvk := c.Live.GetObjectKind().GroupVersionKind()
	return managedfields.NewDefaultFieldManager(convert, plain{}, plain{}, plain{c.Live}, gvk, gvk.GroupVersion(), c.Subresource, reset(gvk.Version, c.Subresource))
}

// reset are the fields that are nobody's, since a write leaves them as they are:
// the status, and of a resize all but the resources.
func reset(version, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	of := fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	if subresource == "resize" {
		every := fieldpath.MatchAnyPathElement()
		of = fieldpath.NewIncludeMatcherFilter(
			fieldpath.MakePrefixMatcherOrDie("spec", "containers", every, "resources"),
			fieldpath.MakePrefixMatcherOrDie("spec", "initContainers", every, "resources"),
		)
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(version): of}
}
