package managed

import (
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"podd/server/kube/openapi"
)

// newTypes returns a type for each model, with the name of the model, and the type anyValue.
func newTypes(models map[string]*openapi.Schema) []schema.TypeDef {
	types := []schema.TypeDef{{Name: anyValue, Atom: newAnyValue()}}
	for name, model := range models {
		types = append(types, schema.TypeDef{Name: name, Atom: newAtom(model)})
	}
	return types
}

// anyValue is the name of the type of values without a model. Lists of this type are merged as a
// whole, and maps by key.
const anyValue = "any"

func newAnyValue() schema.Atom {
	element := schema.TypeRef{NamedType: new(anyValue)}
	return schema.Atom{
		Scalar: new(schema.Untyped),
		List:   &schema.List{ElementType: element, ElementRelationship: schema.Atomic},
		Map:    &schema.Map{ElementType: element, ElementRelationship: schema.Separable},
	}
}

// newAtom returns the type of the values that a model describes.
func newAtom(model *openapi.Schema) schema.Atom {
	switch model.Type {
	case "object":
		return schema.Atom{Map: newMap(model)}
	case "array":
		return schema.Atom{List: newList(model)}
	case "integer", "number":
		return schema.Atom{Scalar: new(schema.Numeric)}
	case "boolean":
		return schema.Atom{Scalar: new(schema.Boolean)}
	case "string":
		if model.Format == "" || model.Format == "byte" {
			return schema.Atom{Scalar: new(schema.String)}
		}
	}
	return schema.Atom{Scalar: new(schema.Untyped)} // for example a date, or a value that is an integer or a string
}

func newMap(model *openapi.Schema) *schema.Map {
	m := &schema.Map{ElementRelationship: mapRelationship(model)}
	for _, name := range slices.Sorted(maps.Keys(model.Properties)) {
		field := model.Properties[name]
		m.Fields = append(m.Fields, schema.StructField{Name: name, Type: newTypeRef(field), Default: field.Default})
	}
	switch {
	case model.AdditionalProperties != nil:
		m.ElementType = newTypeRef(model.AdditionalProperties)
	case len(m.Fields) == 0:
		m.ElementType.NamedType = new(anyValue)
	}
	return m
}

func newList(model *openapi.Schema) *schema.List {
	l := &schema.List{ElementType: newTypeRef(model.Items), ElementRelationship: schema.Atomic}
	if model.ListType == "set" || model.ListType == "map" {
		l.ElementRelationship, l.Keys = schema.Associative, model.ListMapKeys
	}
	return l
}

// newTypeRef returns a reference to the type of a model. If the model is itself a reference, the
// merge rule of the model overrides the merge rule of the type.
func newTypeRef(model *openapi.Schema) schema.TypeRef {
	ref := model.Ref
	if len(model.AllOf) == 1 {
		ref = model.AllOf[0].Ref
	}
	if ref == "" {
		return schema.TypeRef{Inlined: newAtom(model)}
	}
	t := schema.TypeRef{NamedType: new(path.Base(ref))}
	if relationship := mapRelationship(model); relationship != "" {
		t.ElementRelationship = &relationship
	}
	return t
}

// mapRelationship returns the rule for merging the entries of a map, or "" if the model has no
// rule.
func mapRelationship(model *openapi.Schema) schema.ElementRelationship {
	switch model.MapType {
	case "atomic":
		return schema.Atomic
	case "granular":
		return schema.Separable
	}
	return ""
}
