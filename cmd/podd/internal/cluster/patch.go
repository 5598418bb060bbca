package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// patch is a strategic merge patch that makes b of a, of the status, labels and
// annotations; "{}" when they are the same. It is written here, for the library
// that does it for every kind has 3 MB; in tests that is what applies it.
func patch(a, b *v1.Node) ([]byte, error) {
	was, err := fields(a)
	if err != nil {
		return nil, err
	}
	is, err := fields(b)
	if err != nil {
		return nil, err
	}
	delete(was, "spec") // not to be had by way of the status
	delete(is, "spec")
	d := difference(was, is)
	if s, ok := d["status"].(map[string]any); ok {
		before, _ := was["status"].(map[string]any)
		lists(s, before)
	}
	return json.Marshal(d)
}

// fields are those of an object of the API, or of a part of it.
func fields(o any) (m map[string]any, err error) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", o, err)
	}
	return m, nil
}

// difference has what is another in b, objects field by field, and null for what
// is gone.
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

// lists: the API server replaces lists but for two, that it merges by type. Of
// conditions it is sent those that are others; addresses, of which there may be
// several of a type (kubernetes/kubernetes#72202), are to be replaced too.
func lists(d, was map[string]any) {
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
