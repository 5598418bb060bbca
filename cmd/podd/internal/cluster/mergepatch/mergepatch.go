// Package mergepatch computes and encodes JSON merge patches of API objects.
package mergepatch

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Fields returns the JSON fields of o, which is an API object or a part of an API object.
func Fields(o any) (m map[string]any, err error) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", o, err)
	}
	return m, nil
}

// Diff returns the JSON merge patch (RFC 7396) from a to b: the fields of b that
// differ, recursively, and null for removed fields.
func Diff(a, b map[string]any) map[string]any {
	d := map[string]any{}
	for name := range a {
		if _, exists := b[name]; !exists {
			d[name] = nil
		}
	}
	for name, after := range b {
		before := a[name]
		if reflect.DeepEqual(before, after) {
			continue
		}
		afterFields, ok := after.(map[string]any)
		if beforeFields, isObject := before.(map[string]any); ok && isObject {
			after = Diff(beforeFields, afterFields)
		}
		d[name] = after
	}
	return d
}

// Encode returns the JSON form of a patch, which must consist of strings, numbers, lists and maps. It panics
// if v contains another value.
func Encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("mergepatch: encoding JSON: " + err.Error())
	}
	return string(b)
}
