package managed

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"podd/server/kube/openapi"
)

// A converter converts objects to trees of fields, based on the models that the OpenAPI endpoint
// publishes. The opposite direction needs no models.
//
// Package managedfields also has converters that use models, but they would make the program
// larger. managedfields.NewTypeConverter takes the models of kube-openapi, which has its own
// implementation of JSON (0.5 MB). managedfields.NewSchemeTypeConverter calls the method
// OpenAPIModelName of objects, so that the linker would include this method of all types (0.2 MB).
type converter struct {
	managedfields.TypeConverter // used only for TypedToObject
	types                       map[openapi.Kind]typed.ParseableType
}

// newConverter returns a converter for kinds.
func newConverter(kinds []openapi.Resource) managedfields.TypeConverter {
	models := map[string]*openapi.Schema{}
	for _, document := range openapi.Describe("", kinds) {
		maps.Copy(models, document.Components.Schemas)
	}
	parser := typed.Parser{Schema: schema.Schema{Types: newTypes(models)}}
	types := map[openapi.Kind]typed.ParseableType{}
	for name, model := range models {
		for _, kind := range model.Kinds {
			types[kind] = parser.Type(name)
		}
	}
	return converter{managedfields.NewDeducedTypeConverter(), types}
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c converter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	t, ok := c.types[openapi.Kind{Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version}]
	if !ok {
		return nil, fmt.Errorf("converting an object of kind %s: podd has no model of this kind", gvk)
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		return t.FromUnstructured(u.Object, options...)
	}
	return t.FromStructured(object, options...)
}
