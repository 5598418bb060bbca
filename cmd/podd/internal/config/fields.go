package config

import (
	"encoding/json"
	"reflect"
	"strings"
)

// hasFields reports whether the JSON form of typ is an object with the fields of a struct. It
// is false for structs with their own JSON form, such as quantities.
func hasFields(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ.Kind() == reflect.Struct && !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
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
