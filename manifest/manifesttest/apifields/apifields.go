// Package apifields checks which fields of Kubernetes' API podd sets. With a new release of Kubernetes,
// its functions find the fields and constants for which there is no decision yet.
package apifields

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// corePath is the import path of the types whose fields are checked.
var corePath = reflect.TypeFor[v1.Pod]().PkgPath()

// Check checks that the samples together set all fields of their types and of the types of these fields,
// and none of the fields in unset. unset maps a field, such as "PodStatus.nominatedNodeName", to the
// reason why podd does not set it. The fields below such a field are not checked.
func Check(t *testing.T, unset map[string]string, samples ...any) {
	t.Helper()
	all, set := map[string]bool{}, map[string]bool{}
	for _, s := range samples {
		addFields(all, reflect.TypeOf(s), unset)
		addSet(set, reflect.ValueOf(s))
	}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		switch reason := unset[field]; {
		case set[field] && reason != "":
			t.Errorf("%s: podd sets the field, but the table contains a reason why it does not: %s", field, reason)
		case !set[field] && reason == "":
			t.Errorf("%s: no sample sets the field; implement it, or add the reason why podd does not set it to the table", field)
		}
	}
	for field := range unset {
		if !all[field] {
			t.Errorf("%s: the table contains the field, but the checked types do not", field)
		}
	}
}

// addFields adds the fields of typ and of the types below it to all.
func addFields(all map[string]bool, typ reflect.Type, unset map[string]string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != corePath {
		return
	}
	for i := range typ.NumField() {
		name := fieldName(typ, i)
		if all[name] {
			continue
		}
		all[name] = true
		if unset[name] == "" {
			addFields(all, typ.Field(i).Type, unset)
		}
	}
}

// addSet adds the fields that have a value in v to set.
func addSet(set map[string]bool, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		addSet(set, v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			addSet(set, v.Index(i))
		}
	case v.Kind() == reflect.Struct && v.Type().PkgPath() == corePath:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set[fieldName(v.Type(), i)] = true
				addSet(set, v.Field(i))
			}
		}
	}
}

// fieldName returns the name of a struct type and of its field i in JSON, such as "PodStatus.phase".
func fieldName(typ reflect.Type, i int) string {
	name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
	return typ.Name() + "." + name
}

// Constants returns the values of all constants of the package k8s.io/api/core/v1 with the string type
// typeName, such as "PodConditionType".
func Constants(t *testing.T, typeName string) (values []string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", corePath).Output()
	if err != nil {
		t.Fatalf("finding the sources of %s: %v", corePath, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "types.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if values == nil {
		t.Fatalf("got no constants of the type %s, want at least one", typeName)
	}
	return values
}
