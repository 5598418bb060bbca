package config

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

func unknownField(key string, siblings map[string]reflect.Type) string {
	names := make([]string, 0, len(siblings))
	for name := range siblings {
		names = append(names, name)
	}
	slices.Sort(names)
	if path := elsewhere(reflect.TypeFor[kubelet.KubeletConfiguration](), "", key); path != "" {
		return "unknown field, ignored; it belongs at " + path
	}
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("unknown field, ignored; did you mean %q?", near)
	}
	return "unknown field, ignored"
}

// elsewhere returns the path of a field with exactly this name.
func elsewhere(typ reflect.Type, at, key string) string {
	for f := range eachField(typ) {
		path := join(at, f.name)
		if f.name == key {
			return path
		}
		if nested(f.typ) {
			if found := elsewhere(deref(f.typ), path, key); found != "" {
				return found
			}
		}
	}
	return ""
}

// mismatch describes the type that a field expects. It shows the value only of durations,
// because others may be secret.
func mismatch(v any, typ reflect.Type) string {
	typ = deref(typ)
	if s, ok := v.(string); ok && typ == reflect.TypeFor[metav1.Duration]() {
		return fmt.Sprintf("%q is no duration; write it as 10s, 5m or 1h30m", s)
	}
	if _, one := v.(string); one && typ.Kind() == reflect.Slice {
		return "want a list, as [a, b], not a single text"
	}
	if g := given(v); g != "" && g != wanted(typ) {
		return fmt.Sprintf("want %s, not %s", wanted(typ), g)
	}
	return "want " + wanted(typ)
}

func wanted(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[metav1.Duration](), typ == reflect.TypeFor[logs.TimeOrMetaDuration]():
		return `a duration such as "10s"`
	case nested(typ):
		return "a mapping"
	}
	switch kind := typ.Kind(); kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list of " + wanted(typ.Elem())
	case reflect.Map:
		return "a mapping of names to " + wanted(typ.Elem())
	case reflect.Struct:
		return `a quantity such as "10Mi"`
	case reflect.Float64:
		return "a number"
	case reflect.Int32, reflect.Int64, reflect.Uint32:
		return fmt.Sprintf("a whole number of %d bits", typ.Bits())
	}
	return "something else"
}

// given returns the kind of a value, or "" if that explains nothing.
func given(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return ""
}
