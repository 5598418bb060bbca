package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// models maps the name of a Go type to its schema. It also contains the types that the
// schemas refer to.
type models map[string]*Schema

// modelName returns the name that an API server gives to the model of a type, such as
// io.k8s.api.core.v1.Pod.
func modelName(t reflect.Type) string {
	domain, path, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	slices.Reverse(parts)
	if path != "" {
		parts = append(parts, strings.Split(path, "/")...)
	}
	return strings.Join(append(parts, t.Name()), ".")
}

// addKind adds the model for a kind and returns a reference to the model. v is a pointer to a
// struct of the kind's Go type.
func (m models) addKind(v any, gvk schema.GroupVersionKind) *Schema {
	t := reflect.TypeOf(v).Elem()
	ref := m.schemaFor(t)
	model := m[modelName(t)]
	if k := newKind(gvk); !slices.Contains(model.Kinds, k) {
		model.Kinds = append(model.Kinds, k)
	}
	return ref
}

// addList adds the model for a list of a resource, and returns a reference to the model. The models
// of lists differ only in their items.
func (m models) addList(r *Resource) *Schema {
	t := reflect.TypeOf(r.Object).Elem()
	name := modelName(t) + "List"
	s := &Schema{
		Description: r.Kind.Kind + "List is a list of objects of kind " + r.Kind.Kind + ".",
		Type:        "object",
		Properties: map[string]*Schema{
			"metadata": {Description: "Metadata of the list.", AllOf: []*Schema{m.schemaFor(reflect.TypeFor[metav1.ListMeta]())}},
			"items":    {Description: "The objects.", Type: "array", Items: m.schemaFor(t)},
		},
		Required: []string{"items"},
		Kinds:    []Kind{{r.Kind.Group, r.Kind.Kind + "List", r.Kind.Version}},
	}
	m.addFields(s, reflect.TypeFor[metav1.TypeMeta]())
	m[name] = s
	return &Schema{Ref: schemasPath + name}
}

func newKind(gvk schema.GroupVersionKind) Kind { return Kind{gvk.Group, gvk.Kind, gvk.Version} }

// schemaFor returns the schema of a type. If the type is a struct, schemaFor adds the model of
// the struct and returns a reference to the model.
func (m models) schemaFor(t reflect.Type) *Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return m.schemaFor(t.Elem())
	case t.Kind() == reflect.Struct:
		name := modelName(t)
		if m[name] == nil {
			m[name] = &Schema{} // add the model before its fields, because a field may refer to the same model
			*m[name] = m.structSchema(t)
		}
		return &Schema{Ref: schemasPath + name}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &Schema{Type: "string", Format: "byte"}
	case t.Kind() == reflect.Slice:
		return &Schema{Type: "array", Items: m.schemaFor(t.Elem())}
	case t.Kind() == reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: m.schemaFor(t.Elem())}
	}
	return scalarSchema(t.Kind())
}

// scalarSchema returns the schema of a scalar value. The empty schema allows any value.
func scalarSchema(k reflect.Kind) *Schema {
	switch k {
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int64, reflect.Uint64:
		return &Schema{Type: "integer", Format: "int64"}
	case reflect.Int, reflect.Int32, reflect.Int16, reflect.Uint, reflect.Uint32, reflect.Uint16:
		return &Schema{Type: "integer", Format: "int32"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number", Format: "double"}
	}
	return &Schema{}
}

// structSchema returns the schema of a struct.
func (m models) structSchema(t reflect.Type) Schema {
	s := Schema{Description: description(t, "")}
	if v, ok := reflect.Zero(t).Interface().(customSchema); ok {
		s.Type, s.Format = v.OpenAPISchemaType()[0], v.OpenAPISchemaFormat()
		if v, ok := v.(oneOfSchema); ok {
			s.Type = ""
			for _, typeName := range v.OpenAPIV3OneOfTypes() {
				s.OneOf = append(s.OneOf, &Schema{Type: typeName})
			}
		}
		return s
	}
	s.Type = "object"
	s.MapType = mapTypes[modelName(t)]
	m.addFields(&s, t)
	slices.Sort(s.Required)
	return s
}

// A customSchema is a type with a JSON encoding that differs from its Go fields.
type customSchema interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// A oneOfSchema is a type whose JSON encoding can have one of several JSON types.
type oneOfSchema interface{ OpenAPIV3OneOfTypes() []string }

func (m models) addFields(s *Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			m.addFields(s, f.Type)
		case name != "":
			m.addField(s, t, f, name)
			if isRequired(fieldName(t, name), options) {
				s.Required = append(s.Required, name)
			}
		}
	}
}

// isRequired reports whether a field is required. By default, a field is required if it is
// never omitted when the object is encoded.
func isRequired(field, options string) bool {
	if isRequired, ok := requiredByField[field]; ok {
		return isRequired
	}
	return !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
}

func (m models) addField(s *Schema, t reflect.Type, f reflect.StructField, name string) {
	p := m.schemaFor(f.Type)
	if p.Ref != "" {
		p = &Schema{AllOf: []*Schema{p}}
	}
	p.Description = description(t, name)
	p.MergeRules = newMergeRules(t, f, name)
	p.Default = keyDefaults[fieldName(t, name)]
	if s.Properties == nil {
		s.Properties = map[string]*Schema{}
	}
	s.Properties[name] = p
}

// fieldName returns the name of a field in the tables of marker.go.
func fieldName(t reflect.Type, name string) string { return modelName(t) + "." + name }
