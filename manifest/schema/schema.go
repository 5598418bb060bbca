package schema

import (
	"encoding/json"
	"reflect"
	"strings"
)

// kind is the required type of a JSON value.
type kind int

const (
	anyValue       kind = iota
	object              // a struct, with the members Schema.fields
	dictionary          // a map with values of the type Schema.element
	list                // a slice with elements of the type Schema.element
	text                // a string
	boolean             // true or false
	integer             // an integer of Schema.bits bits
	number              // an integer or a fraction
	base64Text          // a []byte
	customEncoding      // Schema.goType implements json.Unmarshaler
)

// A Schema is the JSON form of a Go type. It is immutable.
type Schema struct {
	kind       kind
	fields     map[string]*Schema
	element    *Schema
	bits       int
	isUnsigned bool
	goType     reflect.Type
}

// New returns the Schema of T. unchecked contains the paths of fields whose values are not checked,
// such as "metadata.managedFields".
func New[T any](unchecked ...string) *Schema { return newSchema(reflect.TypeFor[T](), unchecked) }

// newSchema implements New. It is not generic, so that the binary contains it only once.
func newSchema(t reflect.Type, unchecked []string) *Schema {
	s := builder{}.build(t)
	for _, path := range unchecked {
		parent := s
		name := path
		for fieldName, remainingPath, ok := strings.Cut(name, "."); ok; fieldName, remainingPath, ok = strings.Cut(name, ".") {
			parent, name = parent.Field(fieldName), remainingPath
		}
		parent.fields[name] = &Schema{kind: anyValue}
	}
	return s
}

// A builder contains the Schemas of the types that were already visited, because a type may contain
// itself.
type builder map[reflect.Type]*Schema

var unmarshalerType = reflect.TypeFor[json.Unmarshaler]()

// build returns the Schema of t.
func (b builder) build(t reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return b.build(t.Elem())
	}
	if s, ok := b[t]; ok {
		return s
	}
	s := &Schema{goType: t}
	b[t] = s
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		s.kind = customEncoding
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		s.kind, s.fields = object, map[string]*Schema{}
		b.addFields(t, s.fields)
	case reflect.Map:
		s.kind, s.element = dictionary, b.build(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = base64Text
			return s
		}
		s.kind, s.element = list, b.build(t.Elem())
	case reflect.String:
		s.kind = text
	case reflect.Bool:
		s.kind = boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind, s.bits = integer, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.kind, s.bits, s.isUnsigned = integer, t.Bits(), true
	case reflect.Float32, reflect.Float64:
		s.kind = number
	}
	return s
}

// addFields adds the JSON fields of a struct, including the fields of inlined structs.
func (b builder) addFields(t reflect.Type, fields map[string]*Schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			structType := f.Type
			if structType.Kind() == reflect.Pointer {
				structType = structType.Elem()
			}
			b.addFields(structType, fields)
		case name == "":
			fields[f.Name] = b.build(f.Type)
		default:
			fields[name] = b.build(f.Type)
		}
	}
}

// AppendPath appends a key of a value of type s to the path of the value: ".key" for a struct,
// "[key]" for a map. If s is nil, the type of the value is unknown and AppendPath appends ".key".
func (s *Schema) AppendPath(path, key string) string {
	switch {
	case s != nil && s.kind == dictionary:
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// Member returns the Schema of the value at a key of an object. It returns nil if s is nil,
// or if the key is unknown.
func (s *Schema) Member(key string) *Schema {
	switch {
	case s == nil:
		return nil
	case s.kind == dictionary:
		return s.element
	}
	return s.fields[key]
}

// Field returns the Schema of a nested field. The names lead from a field of s to the nested field.
// If one of the fields on this path is a list, the next name is a field of the elements of the
// list. Field returns nil for an unknown field.
func (s *Schema) Field(names ...string) *Schema {
	for _, name := range names {
		if s != nil && s.kind == list {
			s = s.element
		}
		s = s.Member(name)
	}
	return s
}
