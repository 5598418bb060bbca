package config

import (
	"reflect"
	"strings"
	"time"

	"podd/manifest"
)

// settings iterates over the fields of the flags, except Known, and their values.
func (f *Flags) settings() func(yield func(reflect.StructField, reflect.Value) bool) {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		v := reflect.ValueOf(f).Elem()
		for _, field := range reflect.VisibleFields(v.Type()) {
			if field.Anonymous || field.Name == "Known" {
				continue
			}
			if !yield(field, v.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

// layer returns the command line as a layer, which takes precedence over all others.
func (f *Flags) layer() *layer {
	l := &layer{tree: map[string]any{}, flag: map[string]string{}}
	for field, v := range f.settings() {
		if path, ok := field.Tag.Lookup("field"); ok && !v.IsZero() {
			l.set(path, "--"+flagName(field), jsonValue(v))
		}
	}
	for _, k := range f.Known {
		if k.value != nil {
			l.set(k.field, "--"+k.Name, k.value)
		}
	}
	return l
}

// checkedLayer is like layer, but also checks that the values fit their fields. A number may
// be too large, for example.
func (f *Flags) checkedLayer() (*layer, []manifest.Problem) {
	l := f.layer()
	return l, l.check(kubeletSchema())
}

// jsonValue returns the value of a flag in the form of JSON.
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

// flagName returns the name of the flag that kong derives from a field.
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
