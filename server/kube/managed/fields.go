// Package managed tracks which manager has set which field of an object, as an API
// server does in metadata.managedFields, and merges applied configurations (server-side
// apply):
//
//	Update   the object is replaced: the manager owns the fields that differ
//	Apply    a configuration is merged: its fields are set, fields that the manager
//	         set before and that are missing now are removed, and a field that another
//	         manager has set to another value is a conflict unless force is set
//
// The rules for merging lists and maps come from the models of package openapi. They are read once,
// when the first object is written, so that they need no memory in a podd to which no client
// writes.
//
// A FieldTracker is safe for concurrent use.
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

// FieldTracker computes the managed fields of objects of the kinds that are passed to New.
type FieldTracker struct {
	converter func() managedfields.TypeConverter
}

// New returns a FieldTracker for the resources that kinds returns. kinds is called at most once, at
// the first use.
func New(kinds func() []openapi.Resource) *FieldTracker {
	return &FieldTracker{sync.OnceValue(func() managedfields.TypeConverter { return newConverter(kinds()) })}
}

// Change is a write that changes the managers of fields.
type Change struct {
	// Live is the current object with defaults. If the object does not exist yet, only the kind
	// of Live is set.
	Live    server.Object
	Manager string
	// Subresource is the subresource that is written, "" for the object itself.
	Subresource string
}

// Update returns the managed fields of an object after a client has replaced the object. newObject
// is the new object, with defaults. If its managed fields are valid, Update starts from them, so
// that a client can remove itself from the list. Update returns nil for an object without managers.
func (f *FieldTracker) Update(c Change, newObject server.Object) ([]metav1.ManagedFieldsEntry, error) {
	m, err := f.newManager(c)
	if err != nil {
		return nil, err
	}
	o, err := m.Update(c.liveObject(), newObject.DeepCopyObject(), c.Manager)
	if err != nil {
		return nil, fmt.Errorf("updating the managed fields of %q: %w", newObject.GetName(), err)
	}
	return o.(server.Object).GetManagedFields(), nil
}

// Apply merges a configuration into the live object. object is the result as JSON, and
// managers are its managed fields. If force is true, fields of other managers are
// overwritten; otherwise they are conflicts.
func (f *FieldTracker) Apply(c Change, configuration map[string]any, force bool) (object []byte, managers []metav1.ManagedFieldsEntry, err error) {
	m, err := f.newManager(c)
	if err != nil {
		return nil, nil, err
	}
	o, err := m.Apply(c.liveObject(), &unstructured.Unstructured{Object: configuration}, c.Manager, force)
	if err != nil {
		return nil, nil, configurationError(err)
	}
	accessor := o.(metav1.Object)
	fields := accessor.GetManagedFields()
	accessor.SetManagedFields(nil)
	text, err := json.Marshal(o)
	return text, fields, err
}

// liveObject returns a copy of the live object. It removes the managed fields if they are invalid,
// because a user may have edited them in the object's file.
func (c Change) liveObject() runtime.Object {
	o := c.Live.DeepCopyObject().(server.Object)
	if managedfields.ValidateManagedFields(o.GetManagedFields()) != nil {
		o.SetManagedFields(nil)
	}
	return o
}

// configurationError returns err as an API error. If err is not an API error, the configuration has
// an unknown field or a duplicate list entry.
func configurationError(err error) error {
	if statusErr := apierrors.APIStatus(nil); errors.As(err, &statusErr) {
		return err
	}
	return &server.Error{Status: http.StatusBadRequest, Message: err.Error()}
}

func (f *FieldTracker) newManager(c Change) (*managedfields.FieldManager, error) {
	gvk := c.Live.GetObjectKind().GroupVersionKind()
	return managedfields.NewDefaultFieldManager(f.converter(), singleVersion{}, singleVersion{}, singleVersion{c.Live}, gvk, gvk.GroupVersion(), c.Subresource, ignoredFields(gvk.Version, c.Subresource))
}

// ignoredFields returns the fields that are not tracked because the write does not
// change them: the status or, for a resize, everything but the resources.
func ignoredFields(version, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	filter := fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	if subresource == "resize" {
		anyElement := fieldpath.MatchAnyPathElement()
		filter = fieldpath.NewIncludeMatcherFilter(
			fieldpath.MakePrefixMatcherOrDie("spec", "containers", anyElement, "resources"),
			fieldpath.MakePrefixMatcherOrDie("spec", "initContainers", anyElement, "resources"),
		)
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(version): filter}
}
