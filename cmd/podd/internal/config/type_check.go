package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"podd/manifest"
)

// A typeChecker checks a layer against a Go type. An unknown key is a warning, and a value of
// another type is an error. Both are removed from the tree.
type typeChecker struct {
	layer    *layer
	problems []manifest.Problem
}

// checkObject checks the fields of a struct.
func (t *typeChecker) checkObject(tree map[string]any, typ reflect.Type, at string) {
	fields := jsonFields(typ)
	for _, key := range t.sortedKeys(tree, at) {
		path := join(at, key)
		field, ok := fields[key]
		if !ok {
			t.add(manifest.Warning, path, unknownField(key, fields))
			delete(tree, key)
			continue
		}
		if tree[key] != nil && !t.checkValue(tree[key], field, path) {
			delete(tree, key)
		}
	}
}

// checkValue reports whether v can be decoded into typ. It recurses into structs, maps and
// lists, so that errors have exact positions.
func (t *typeChecker) checkValue(v any, typ reflect.Type, path string) bool {
	typ = deref(typ)
	switch x := v.(type) {
	case map[string]any:
		if hasFields(typ) {
			t.checkObject(x, typ, path)
			return true
		}
		if typ.Kind() == reflect.Map {
			t.checkEntries(x, typ.Elem(), path)
			return true
		}
	case []any:
		if typ.Kind() == reflect.Slice {
			return t.checkElements(x, typ.Elem(), path)
		}
	default:
		if !hasFields(typ) && fits(v, typ) {
			return true
		}
	}
	t.add(manifest.Error, path, mismatch(v, typ))
	return false
}

// checkEntries checks the values of a map.
func (t *typeChecker) checkEntries(m map[string]any, typ reflect.Type, at string) {
	for _, key := range t.sortedKeys(m, at) {
		if m[key] != nil && !t.checkValue(m[key], typ, join(at, key)) {
			delete(m, key)
		}
	}
}

// checkElements reports whether all elements can be decoded.
func (t *typeChecker) checkElements(list []any, typ reflect.Type, at string) bool {
	ok := true
	for i, v := range list {
		ok = t.checkValue(v, typ, index(at, i)) && ok
	}
	return ok
}

// fits reports whether a boolean, number, string or null can be decoded into typ.
func fits(v any, typ reflect.Type) bool {
	data, err := json.Marshal(v)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface()) == nil
}

func (t *typeChecker) add(sev manifest.Severity, path, message string) {
	t.problems = append(t.problems, t.layer.origin(path).problem(sev, path, message))
}

// sortedKeys returns the keys in the order of the file.
func (t *typeChecker) sortedKeys(tree map[string]any, at string) []string {
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
