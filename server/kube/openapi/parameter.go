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
	var parameters []Parameter
	if options == nil {
		return nil
	}
	t := reflect.Indirect(reflect.ValueOf(options)).Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fieldType := f.Type
		if fieldType.Kind() == reflect.Pointer || fieldType.Kind() == reflect.Slice {
			fieldType = fieldType.Elem()
		}
		if s := scalarSchema(fieldType.Kind()); name != "" && s.Type != "" {
			parameters = append(parameters, Parameter{
				Name: name, In: "query", Description: description(t, name),
				Schema: &Schema{Type: s.Type, UniqueItems: true},
			})
		}
	}
	return parameters
}

// pathParameters returns the parameters that all operations of a path share.
func pathParameters(path, kind string) []Parameter {
	var parameters []Parameter
	if strings.Contains(path, "{name}") {
		parameters = append(parameters, pathParameter("name", "name of the "+kind))
	}
	if strings.Contains(path, "{namespace}") {
		parameters = append(parameters, pathParameter("namespace", "namespace of the "+kind))
	}
	return parameters
}

// pathParameter returns a parameter that is part of the path. text is its description.
func pathParameter(name, text string) Parameter {
	return Parameter{
		Name: name, In: "path", Description: text, Required: true,
		Schema: &Schema{Type: "string", UniqueItems: true},
	}
}
