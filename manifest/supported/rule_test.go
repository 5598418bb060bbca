package supported

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestFieldTables checks that each row names a different field of a Pod.
func TestFieldTables(t *testing.T) {
	seen := map[string]bool{}
	check := func(prefix string, rows []row) {
		for _, r := range rows {
			path := prefix + r.path
			if seen[path] {
				t.Errorf("%s has two rows in the tables, want one", path)
			}
			seen[path] = true
			if !exists(reflect.TypeFor[v1.Pod](), path) {
				t.Errorf("%s is not a field of a Pod", path)
			}
			if hasNote := r.note != ""; hasNote != (r.verdict == acceptedWithWarning || r.verdict == onlyOneValue || r.verdict == refusedWithNote) {
				t.Errorf("%s: got note %q, want a note if and only if the verdict needs an explanation", path, r.note)
			}
		}
	}
	check("", podFields)
	check("spec.containers[].", containerFields)
	for _, field := range manifest.ServerMetadataFields {
		if !exists(reflect.TypeFor[v1.Pod](), "metadata."+field) {
			t.Errorf("metadata.%s is not a field of a Pod", field)
		}
	}
}

// exists reports whether a type has a field at path.
func exists(typ reflect.Type, path string) bool {
	for _, step := range splitPath(path) {
		if typ = member(typ, step); typ == nil {
			return false
		}
	}
	return true
}

// member returns the type of the field or element that a step of a path names, or nil.
func member(typ reflect.Type, step string) reflect.Type {
	switch typ = elem(typ); {
	case step == "[]" && typ.Kind() == reflect.Slice, step[0] == '[' && typ.Kind() == reflect.Map:
		return typ.Elem()
	case typ.Kind() != reflect.Struct:
		return nil
	}
	return jsonFields(typ)[step]
}

// knownFields contains the results of jsonFields, because the tests need the fields of a few types
// a million times.
var knownFields = map[reflect.Type]map[string]reflect.Type{}

// jsonFields returns the types of the JSON fields of a struct by name, including those of
// inlined structs. Callers must not change the result.
func jsonFields(typ reflect.Type) map[string]reflect.Type {
	if fields, ok := knownFields[typ]; ok {
		return fields
	}
	fields := map[string]reflect.Type{}
	knownFields[typ] = fields
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			maps.Copy(fields, jsonFields(elem(f.Type)))
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func elem(typ reflect.Type) reflect.Type {
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

// TestRules_NoRedundantRow checks that a row below another row has another verdict.
func TestRules_NoRedundantRow(t *testing.T) {
	var walk func(path string, r *rule)
	walk = func(path string, r *rule) {
		for key, m := range r.fields {
			if r.path != "" && m.path != "" && m.verdict == r.verdict {
				t.Errorf("%s/%s has the verdict of the row above it, want no row", path, key)
			}
			walk(path+"/"+key, m)
		}
	}
	walk("", podRules())
}
