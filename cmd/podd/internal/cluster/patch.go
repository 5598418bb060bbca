package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// patch returns a strategic merge patch from a to b for the status, labels and
// annotations, or "{}" if they are equal. apimachinery's strategicpatch would add 3 MB to
// the binary; tests use it to verify the patches.
func patch(a, b *v1.Node) ([]byte, error) {
	was, err := jsonFields(a)
	if err != nil {
		return nil, err
	}
	is, err := jsonFields(b)
	if err != nil {
		return nil, err
	}
	delete(was, "spec") // cannot be changed with the status
	delete(is, "spec")
	d := difference(was, is)
	if s, ok := d["status"].(map[string]any); ok {
		before, _ := was["status"].(map[string]any)
		trimLists(s, before)
	}
	return json.Marshal(d)
}

// jsonFields returns the JSON fields of an API object or a part of one.
func jsonFields(o any) (m map[string]any, err error) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", o, err)
	}
	return m, nil
}

// difference returns the fields that differ in b, recursively, and null for removed
// fields.
func difference(a, b map[string]any) map[string]any {
	d := map[string]any{}
	for name := range a {
		if _, stays := b[name]; !stays {
			d[name] = nil
		}
	}
	for name, is := range b {
		was := a[name]
		if reflect.DeepEqual(was, is) {
			continue
		}
		inner, ok := is.(map[string]any)
		if before, both := was.(map[string]any); ok && both {
			is = difference(before, inner)
		}
		d[name] = is
	}
	return d
}

// trimLists adapts the lists of a patch. The API server replaces all lists but conditions
// and addresses, which it merges by type. Unchanged conditions are removed. Addresses are
// replaced, because several may have the same type (kubernetes/kubernetes#72202).
func trimLists(d, was map[string]any) {
	if all, ok := d["conditions"].([]any); ok {
		before, _ := was["conditions"].([]any)
		others := []any{}
		for _, c := range all {
			if !has(before, c) {
				others = append(others, c)
			}
		}
		d["conditions"] = others
	}
	if all, ok := d["addresses"].([]any); ok {
		d["addresses"] = append([]any{map[string]any{"$patch": "replace"}}, all...)
	}
}

func has(all []any, v any) bool {
	for _, w := range all {
		if reflect.DeepEqual(w, v) {
			return true
		}
	}
	return false
}
