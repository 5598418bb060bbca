package supported

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestServedTable: every row names a field that a Pod has, once.
func TestServedTable(t *testing.T) {
	seen := map[string]bool{}
	check := func(prefix string, rows []row) {
		for _, r := range rows {
			path := prefix + r.path
			if seen[path] {
				t.Errorf("%s is in the table twice", path)
			}
			seen[path] = true
			if !exists(reflect.TypeFor[v1.Pod](), path) {
				t.Errorf("%s is no field of a Pod", path)
			}
			if says := r.note != ""; says != (r.verdict == warned || r.verdict == oneValue || r.verdict == refusedWithNote) {
				t.Errorf("%s: note %q does not fit its verdict", path, r.note)
			}
		}
	}
	check("", podFields)
	check("spec.containers[].", containerFields)
	for _, field := range manifest.ServerMetadata {
		if !exists(reflect.TypeFor[v1.Pod](), "metadata."+field) {
			t.Errorf("metadata.%s is no field of a Pod", field)
		}
	}
}

// exists finds a path of a table in a type.
func exists(typ reflect.Type, path string) bool {
	for _, step := range steps(path) {
		if typ = member(typ, step); typ == nil {
			return false
		}
	}
	return true
}

// member is the type of a step of a path, or nil.
func member(typ reflect.Type, step string) reflect.Type {
	switch typ = pointed(typ); {
	case step == "[]" && typ.Kind() == reflect.Slice, step[0] == '[' && typ.Kind() == reflect.Map:
		return typ.Elem()
	case typ.Kind() != reflect.Struct:
		return nil
	}
	return jsonFields(typ)[step]
}

// jsonFields are the fields of a struct, and of structs that it inlines, by name.
func jsonFields(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			maps.Copy(fields, jsonFields(pointed(f.Type)))
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func pointed(typ reflect.Type) reflect.Type {
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

// TestEveryRuleDecides: a field is either decided or leads to fields that are.
func TestEveryRuleDecides(t *testing.T) {
	var walk func(path string, r *rule)
	walk = func(path string, r *rule) {
		if r.path != "" && r.fields != nil {
			t.Errorf("%s is decided as a whole and in parts", path)
		}
		for key, member := range r.fields {
			walk(path+"/"+key, member)
		}
	}
	walk("", podRules())
}
