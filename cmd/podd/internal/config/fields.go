package config

import (
	"encoding/json"
	"reflect"
	"strings"
)

// hasFields reports whether the JSON form of typ is an object with the fields of a struct. It
// is false for structs with their own JSON form, such as quantities.
func hasFields(typ reflect.Type) bool {
	typ = deref(typ)
	return typ.Kind() == reflect.Struct && !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func deref(typ reflect.Type) reflect.Type {
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

// jsonFields returns the types of the fields of a struct by JSON name, including those of
// inlined structs.
func jsonFields(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range eachField(typ) {
		fields[f.name] = f.typ
	}
	return fields
}

type jsonField struct {
	name  string
	typ   reflect.Type
	index []int
}

// eachField iterates over the fields of a struct in order, including those of inlined
// structs in their place.
func eachField(typ reflect.Type) func(yield func(jsonField) bool) {
	return func(yield func(jsonField) bool) {
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			if !yield(jsonField{name, f.Type, f.Index}) {
				return
			}
		}
	}
}
