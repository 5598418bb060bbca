package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// models are the schemas of Go types and of all they refer to, by name.
type models map[string]*Schema

// modelName is how the apiserver calls a type: io.k8s.api.core.v1.Pod.
func modelName(t reflect.Type) string {
	domain, path, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	slices.Reverse(parts)
	if path != "" {
		parts = append(parts, strings.Split(path, "/")...)
	}
	return strings.Join(append(parts, t.Name()), ".")
}

// addKind adds the model of v, a pointer to a struct, as that of a kind, and
// refers to it.
func (m models) addKind(v any, gvk schema.GroupVersionKind) *Schema {
	t := reflect.TypeOf(v).Elem()
	ref := m.of(t)
	model := m[modelName(t)]
	if k := kindOf(gvk); !slices.Contains(model.Kinds, k) {
		model.Kinds = append(model.Kinds, k)
	}
	return ref
}

// addList adds the model of a resource's list, which all lists have in common
// but for their items, and refers to it.
func (m models) addList(r *Resource) *Schema {
	t := reflect.TypeOf(r.Object).Elem()
	name := modelName(t) + "List"
	s := &Schema{
		Description: r.Kind.Kind + "List is a list of objects of kind " + r.Kind.Kind + ".",
		Type:        "object",
		Properties: map[string]*Schema{
			"metadata": {Description: "Of the list itself.", AllOf: []*Schema{m.of(reflect.TypeFor[metav1.ListMeta]())}},
			"items":    {Description: "The objects.", Type: "array", Items: m.of(t)},
		},
		Required: []string{"items"},
		Kinds:    []Kind{{r.Kind.Group, r.Kind.Kind + "List", r.Kind.Version}},
	}
	m.addFields(s, reflect.TypeFor[metav1.TypeMeta]())
	m[name] = s
	return &Schema{Ref: v3Schemas + name}
}

func kindOf(gvk schema.GroupVersionKind) Kind { return Kind{gvk.Group, gvk.Kind, gvk.Version} }

// of is the schema of a type; a named one is added and referred to.
func (m models) of(t reflect.Type) *Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return m.of(t.Elem())
	case t.Kind() == reflect.Struct:
		name := modelName(t)
		if m[name] == nil {
			m[name] = &Schema{} // known before its fields: types may be recursive
			*m[name] = m.model(t)
		}
		return &Schema{Ref: v3Schemas + name}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &Schema{Type: "string", Format: "byte"}
	case t.Kind() == reflect.Slice:
		return &Schema{Type: "array", Items: m.of(t.Elem())}
	case t.Kind() == reflect.Map:
		return &Schema{Type: "object", Values: m.of(t.Elem())}
	}
	return scalar(t.Kind())
}

// scalar is the schema of a plain value; the empty schema allows anything.
func scalar(k reflect.Kind) *Schema {
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

// model is the schema of a struct.
func (m models) model(t reflect.Type) Schema {
	s := Schema{Description: textOf(t, "")}
	if v, ok := reflect.Zero(t).Interface().(ownForm); ok {
		s.Type, s.Format = v.OpenAPISchemaType()[0], v.OpenAPISchemaFormat()
		if v, ok := v.(manyForms); ok {
			s.Type = ""
			for _, of := range v.OpenAPIV3OneOfTypes() {
				s.OneOf = append(s.OneOf, &Schema{Type: of})
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

// ownForm is a type that is written otherwise than its Go fields.
type ownForm interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// manyForms is an ownForm that is written in one of several ways.
type manyForms interface{ OpenAPIV3OneOfTypes() []string }

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

// isRequired tells whether a field must be there: one that is never left out
// when it is written.
func isRequired(field, options string) bool {
	if must, ok := required[field]; ok {
		return must
	}
	return !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
}

func (m models) addField(s *Schema, t reflect.Type, f reflect.StructField, name string) {
	p := m.of(f.Type)
	if p.Ref != "" {
		p = &Schema{AllOf: []*Schema{p}}
	}
	p.Description = textOf(t, name)
	p.Merging = mergingOf(t, f, name)
	p.Default = defaults[fieldName(t, name)]
	if s.Properties == nil {
		s.Properties = map[string]*Schema{}
	}
	s.Properties[name] = p
}

// fieldName names a field in the tables of marker.go.
func fieldName(t reflect.Type, name string) string { return modelName(t) + "." + name }
