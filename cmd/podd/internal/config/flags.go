package config

import (
	"reflect"
	"strings"
	"time"

	"podd/manifest"
)

// settings iterates over all flags, except Unsupported, and their values.
func (f *Flags) settings() func(yield func(reflect.StructField, reflect.Value) bool) {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		v := reflect.ValueOf(f).Elem()
		for _, field := range reflect.VisibleFields(v.Type()) {
			if field.Anonymous || field.Type == reflect.TypeFor[[]UnsupportedFlag]() {
				continue
			}
			if !yield(field, v.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

// layer returns a layer with the flags that were set and have a v1beta1 field.
func (f *Flags) layer() *layer {
	l := &layer{tree: map[string]any{}, flags: map[string]string{}}
	for field, v := range f.settings() {
		if path, ok := field.Tag.Lookup("field"); ok && !v.IsZero() {
			l.set(path, "--"+flagName(field), jsonValue(v))
		}
	}
	for _, flag := range f.Unsupported {
		if flag.value != nil {
			l.set(flag.field, "--"+flag.Name, flag.value)
		}
	}
	return l
}

// checkedLayer returns the layer of f without the values that do not fit the types of their fields,
// such as numbers that are too large. It returns a problem for each of these values.
func (f *Flags) checkedLayer() (*layer, []manifest.Problem) {
	l := f.layer()
	return l, l.removeInvalid(kubeletSchema())
}

// jsonValue returns the value of a flag in the form that encoding/json decodes it to, for example
// []any for []string.
func jsonValue(v reflect.Value) any {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case []string:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return list
	case bool, string:
		return x
	}
	if v.CanUint() {
		return int64(v.Uint())
	}
	return v.Int()
}

// flagName returns the name of the flag that kong derives from a field of Flags, without
// dashes in front.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
