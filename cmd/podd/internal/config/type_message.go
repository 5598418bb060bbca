package config

import (
	"fmt"
	"reflect"
	"slices"

	"podd/manifest/wording"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// unknownField returns the message of an unknown field. siblings are the known fields.
func unknownField(key string, siblings map[string]reflect.Type) string {
	names := make([]string, 0, len(siblings))
	for name := range siblings {
		names = append(names, name)
	}
	slices.Sort(names)
	if path := findField(reflect.TypeFor[kubelet.KubeletConfiguration](), "", key); path != "" {
		return fmt.Sprintf("unknown field, ignored; did you mean %s?", path)
	}
	if near := wording.Closest(key, names); near != "" {
		return fmt.Sprintf("unknown field, ignored; did you mean %q?", near)
	}
	return "unknown field, ignored"
}

// findField returns the path of the field key in typ or below it, or "".
func findField(typ reflect.Type, at, key string) string {
	for f := range eachField(typ) {
		path := join(at, f.name)
		if f.name == key {
			return path
		}
		if hasFields(f.typ) {
			if found := findField(deref(f.typ), path, key); found != "" {
				return found
			}
		}
	}
	return ""
}

// mismatch returns the message of a value with another type than typ. It shows the value only
// of durations, because others may be secret.
func mismatch(v any, typ reflect.Type) string {
	typ = deref(typ)
	if s, ok := v.(string); ok && typ == reflect.TypeFor[metav1.Duration]() {
		return fmt.Sprintf("%q is not a duration such as 10s, 5m or 1h30m", s)
	}
	if _, isString := v.(string); isString && typ.Kind() == reflect.Slice {
		return "want a list such as [a, b], not a string"
	}
	if actual := actualType(v); actual != "" && actual != expectedType(typ) {
		return fmt.Sprintf("want %s, not %s", expectedType(typ), actual)
	}
	return "want " + expectedType(typ)
}

// expectedType describes typ for users.
func expectedType(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[metav1.Duration](), typ == reflect.TypeFor[logs.TimeOrMetaDuration]():
		return `a duration such as "10s"`
	case hasFields(typ):
		return "a mapping"
	}
	switch kind := typ.Kind(); kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a mapping"
	case reflect.Struct:
		return `a quantity such as "10Mi"`
	case reflect.Float64:
		return "a number"
	case reflect.Int32, reflect.Int64, reflect.Uint32:
		return fmt.Sprintf("a whole number of at most %d bits", typ.Bits())
	}
	return "another type"
}

// actualType describes the type of a value for users, or returns "" if that would not help.
func actualType(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return ""
}
