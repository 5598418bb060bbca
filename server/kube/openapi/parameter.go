package openapi

import (
	"reflect"
	"strings"
)

// Parameter is a parameter of a request other than its body.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"` // "query" or "path"
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
}

// queryParameters returns a parameter for every scalar field of options. A list field is a
// parameter that may be repeated.
func queryParameters(options any) []Parameter {
	var all []Parameter
	if options == nil {
		return nil
	}
	t := reflect.Indirect(reflect.ValueOf(options)).Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		if of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if s := scalarSchema(of.Kind()); name != "" && s.Type != "" {
			all = append(all, Parameter{
				Name: name, In: "query", Description: description(t, name),
				Schema: &Schema{Type: s.Type, UniqueItems: true},
			})
		}
	}
	return all
}

// pathParameters returns the parameters that all operations of a path share.
func pathParameters(path, kind string) []Parameter {
	var all []Parameter
	if strings.Contains(path, "{name}") {
		all = append(all, pathParameter("name", "name of the "+kind))
	}
	if strings.Contains(path, "{namespace}") {
		all = append(all, pathParameter("namespace", "namespace of the "+kind))
	}
	return all
}

// pathParameter returns a parameter that is part of the path. text is its description.
func pathParameter(name, text string) Parameter {
	return Parameter{
		Name: name, In: "path", Description: text, Required: true,
		Schema: &Schema{Type: "string", UniqueItems: true},
	}
}
