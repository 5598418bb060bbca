package config

import (
	"encoding/json"
	"reflect"
	"strings"
)

// hasFields reports whether typ is a struct, or a pointer to a struct, that is encoded as a
// JSON object. A type with its own UnmarshalJSON, such as resource.Quantity, has no fields.
func hasFields(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ.Kind() == reflect.Struct && !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// A jsonField is a field of a struct.
type jsonField struct {
	name  string
	typ   reflect.Type
	index []int
}

// eachField iterates over the fields of a struct type in order. The fields of an inlined
// struct take the place of that struct.
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
