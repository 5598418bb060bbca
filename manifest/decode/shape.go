package decode

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// shapeKind is the required type of a JSON value.
type shapeKind int

const (
	anything shapeKind = iota
	object             // fields by name, see shape.fields
	dict               // any keys, values of shape.elem
	list               // values of shape.elem
	text
	truth
	whole   // an integer of shape.bits
	number  // any number
	encoded // []byte, base64
	custom  // shape.typ has its own UnmarshalJSON
)

// shape is the JSON form of a Go type, computed once by reflection. It is immutable.
type shape struct {
	kind   shapeKind
	fields map[string]*shape
	elem   *shape
	bits   int
	typ    reflect.Type
}

// Shapes of the kinds that File reads.
var (
	podShape = sync.OnceValue(func() *shape {
		s := shapeOf(reflect.TypeFor[v1.Pod]())
		s.fields["status"] = &shape{kind: anything}
		for _, key := range manifest.ServerMetadata {
			s.fields["metadata"].fields[key] = &shape{kind: anything}
		}
		return s
	})
	configShape = sync.OnceValue(func() *shape { return shapeOf(reflect.TypeFor[v1.ConfigMap]()) })
	secretShape = sync.OnceValue(func() *shape { return shapeOf(reflect.TypeFor[v1.Secret]()) })
	claimShape  = sync.OnceValue(func() *shape { return shapeOf(reflect.TypeFor[v1.PersistentVolumeClaim]()) })
	volumeShape = sync.OnceValue(func() *shape { return shapeOf(reflect.TypeFor[v1.PersistentVolume]()) })
)

func shapeOf(t reflect.Type) *shape {
	return shaper{}.of(t)
}

// shaper stores the types it has seen, because types may be recursive.
type shaper map[reflect.Type]*shape

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (sr shaper) of(t reflect.Type) *shape {
	if t.Kind() == reflect.Pointer {
		return sr.of(t.Elem())
	}
	if s, ok := sr[t]; ok {
		return s
	}
	s := &shape{typ: t}
	sr[t] = s
	if reflect.PointerTo(t).Implements(unmarshaler) {
		s.kind = custom
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		s.kind, s.fields = object, map[string]*shape{}
		sr.addFields(t, s.fields)
	case reflect.Map:
		s.kind, s.elem = dict, sr.of(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = encoded
			return s
		}
		s.kind, s.elem = list, sr.of(t.Elem())
	case reflect.String:
		s.kind = text
	case reflect.Bool:
		s.kind = truth
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind, s.bits = whole, t.Bits()
	case reflect.Float32, reflect.Float64:
		s.kind = number
	}
	return s
}

// addFields adds a struct's JSON fields, including those of inlined structs.
func (sr shaper) addFields(t reflect.Type, fields map[string]*shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			inlined := f.Type
			if inlined.Kind() == reflect.Pointer {
				inlined = inlined.Elem()
			}
			sr.addFields(inlined, fields)
		case name == "":
			fields[f.Name] = sr.of(f.Type)
		default:
			fields[name] = sr.of(f.Type)
		}
	}
}

// step returns the path of the member at key.
func (s *shape) step(path, key string) string {
	switch {
	case s != nil && s.kind == dict:
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// member returns the shape of the value at key; nil for an unknown key.
func (s *shape) member(key string) *shape {
	switch s.kind {
	case object:
		return s.fields[key]
	case dict:
		return s.elem
	}
	return nil
}
