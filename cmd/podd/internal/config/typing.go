package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"podd/manifest"
)

// typing checks a layer against the Go types. An unknown key is a warning, and a value of
// another type an error. Both are removed from the tree.
type typing struct {
	layer    *layer
	problems []manifest.Problem
}

func (t *typing) object(tree map[string]any, typ reflect.Type, at string) {
	fields := jsonFields(typ)
	for _, key := range t.inOrder(tree, at) {
		path := join(at, key)
		field, ok := fields[key]
		if !ok {
			t.add(manifest.Warning, path, unknownField(key, fields))
			delete(tree, key)
			continue
		}
		if tree[key] != nil && !t.value(tree[key], field, path) {
			delete(tree, key)
		}
	}
}

// value reports whether v fits. It recurses into structs, maps and lists, so that errors
// have exact positions.
func (t *typing) value(v any, typ reflect.Type, path string) bool {
	typ = deref(typ)
	switch x := v.(type) {
	case map[string]any:
		if nested(typ) {
			t.object(x, typ, path)
			return true
		}
		if typ.Kind() == reflect.Map {
			t.entries(x, typ.Elem(), path)
			return true
		}
	case []any:
		if typ.Kind() == reflect.Slice {
			return t.elements(x, typ.Elem(), path)
		}
	default:
		if !nested(typ) && fits(v, typ) {
			return true
		}
	}
	t.add(manifest.Error, path, mismatch(v, typ))
	return false
}

func (t *typing) entries(m map[string]any, typ reflect.Type, at string) {
	for _, key := range t.inOrder(m, at) {
		if m[key] != nil && !t.value(m[key], typ, join(at, key)) {
			delete(m, key)
		}
	}
}

func (t *typing) elements(list []any, typ reflect.Type, at string) bool {
	ok := true
	for i, v := range list {
		ok = t.value(v, typ, index(at, i)) && ok
	}
	return ok
}

// fits reports whether a bool, number, string or null can be decoded into typ.
func fits(v any, typ reflect.Type) bool {
	data, err := json.Marshal(v)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface()) == nil
}

func (t *typing) add(sev manifest.Severity, path, message string) {
	t.problems = append(t.problems, t.layer.origin(path).problem(sev, path, message))
}

// inOrder returns the keys in the order of the file.
func (t *typing) inOrder(tree map[string]any, at string) []string {
	keys := make([]string, 0, len(tree))
	for key := range tree {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		p, q := t.layer.at[join(at, a)], t.layer.at[join(at, b)]
		if p != q {
			return int(p.Line)<<16 + int(p.Column) - int(q.Line)<<16 - int(q.Column)
		}
		return strings.Compare(a, b)
	})
	return keys
}
