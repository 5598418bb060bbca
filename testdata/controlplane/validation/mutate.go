package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/testdata/controlplane/change"
)

// mutator creates the cases of all bases. If many bases have a field, mutator sets it to all of
// its values in only a few of them, because the other cases would test nothing new.
type mutator struct {
	sets        [][]change.Change
	placeCounts map[string]int // number of changed places, by kind of change and field, with "*" for indexes
}

// maxFullPlaces is the maximum number of places in which a field is set to all of its values.
const maxFullPlaces = 2

// cases returns the changes of all cases of a base.
func (m *mutator) cases(b base) [][]change.Change {
	if b.isFixed {
		return nil
	}
	m.sets = nil
	pod := b.pod.(map[string]any)
	t := reflect.TypeFor[v1.Pod]()
	for _, top := range []string{"metadata", "spec"} {
		m.walk(pod[top], findField(t, top).Type, []string{top})
	}
	return append(m.sets, pairs(b)...)
}

// exceedsPlaces counts the places in which a field was changed in the way that kind names. It
// reports whether their number exceeds maxPlaces.
func (m *mutator) exceedsPlaces(kind string, path []string, maxPlaces int) bool {
	key := kind
	for _, step := range path {
		if _, err := strconv.Atoi(step); err == nil {
			step = "*"
		}
		key += "." + step
	}
	m.placeCounts[key]++
	return m.placeCounts[key] > maxPlaces
}

// set adds a case for each value of one field.
func (m *mutator) set(path []string, values ...any) {
	for _, v := range values {
		m.sets = append(m.sets, []change.Change{{Path: slices.Clone(path), Value: v}})
	}
}

func (m *mutator) remove(path []string) {
	m.sets = append(m.sets, []change.Change{{Path: slices.Clone(path), Remove: true}})
}

// walk adds the cases for a value of a base and all values in it.
func (m *mutator) walk(v any, t reflect.Type, path []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !m.exceedsPlaces("type", path, 1) {
		m.set(path, valuesOfWrongType(t)...)
	}
	switch {
	case hasCustomDecoder(t) || isScalar(t):
		if m.exceedsPlaces("value", path, maxFullPlaces) {
			return
		}
		m.set(path, values(t, fieldName(path))...)
	case t.Kind() == reflect.Struct:
		m.walkObject(v, t, path)
	case t.Kind() == reflect.Map:
		m.walkMap(v, t, path)
	case t.Kind() == reflect.Slice:
		m.walkList(v, t, path)
	}
}

// walkObject adds the cases for each field of an object. If the base has the field, these are its
// removal and the cases of walk. Otherwise these are values of its type.
func (m *mutator) walkObject(v any, t reflect.Type, path []string) {
	if len(path) > 1 {
		m.set(path, map[string]any{})
	}
	entries, _ := v.(map[string]any)
	for _, f := range fields(t) {
		name, fieldPath := jsonName(f), child(path, jsonName(f))
		if isServerField(fieldPath) {
			continue
		}
		if value, ok := entries[name]; ok {
			m.remove(fieldPath)
			m.walk(value, f.Type, fieldPath)
			continue
		}
		if m.exceedsPlaces("lack", fieldPath, 1) {
			continue
		}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case hasCustomDecoder(ft) || isScalar(ft):
			m.set(fieldPath, values(ft, name)...)
		case ft.Kind() == reflect.Slice:
			m.set(fieldPath, []any{}, []any{zeroValue(ft.Elem())})
		default:
			m.set(fieldPath, map[string]any{})
		}
	}
}

func (m *mutator) walkMap(v any, t reflect.Type, path []string) {
	m.set(path, nil, map[string]any{})
	entries, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		m.remove(child(path, key))
		m.walk(entries[key], t.Elem(), child(path, key))
		for _, otherKey := range mapKeys {
			m.set(child(path, otherKey), entries[key])
		}
		if t.Key() == reflect.TypeFor[v1.ResourceName]() {
			for _, name := range resourceNames {
				m.set(child(path, name), entries[key], "0", "1500m", "4Mi")
			}
		}
	}
}

func (m *mutator) walkList(v any, t reflect.Type, path []string) {
	items, _ := v.([]any)
	m.set(path, nil, []any{})
	newItemPath := child(path, strconv.Itoa(len(items)))
	m.set(newItemPath, zeroValue(t.Elem()))
	for i := range items {
		itemPath := child(path, strconv.Itoa(i))
		m.remove(itemPath)
		m.set(newItemPath, items[i]) // a duplicate
		m.walk(items[i], t.Elem(), itemPath)
		if item, ok := items[i].(map[string]any); ok && item["name"] != nil {
			renamedItem := change.Clone(item).(map[string]any)
			renamedItem["name"] = "another"
			m.set(newItemPath, renamedItem) // a duplicate with another name
		}
	}
	if isScalar(t.Elem()) {
		manyItems := make([]any, 40)
		for i := range manyItems {
			manyItems[i] = "a" + strconv.Itoa(i)
		}
		m.set(path, manyItems)
	}
}

// valuesOfWrongType returns values that no field of a type can have.
func valuesOfWrongType(t reflect.Type) []any {
	switch {
	case t == reflect.TypeFor[resource.Quantity](), t == reflect.TypeFor[intstr.IntOrString]():
		return []any{true, []any{}}
	case hasCustomDecoder(t):
		return []any{true}
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return []any{"text", []any{"text"}}
	case t.Kind() == reflect.Slice:
		return []any{"text", map[string]any{"a": "b"}}
	case t.Kind() == reflect.String:
		return []any{5, true}
	case t.Kind() == reflect.Bool:
		return []any{"true", 1}
	}
	return []any{"5", 1.5, true}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// hasCustomDecoder reports whether a type has its own JSON decoder.
func hasCustomDecoder(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		return false
	}
	return true
}

func zeroValue(t reflect.Type) any {
	switch {
	case isScalar(t) && t.Kind() == reflect.String:
		return ""
	case isScalar(t):
		return 0
	}
	return map[string]any{}
}

// fields returns the JSON fields of a struct, including those of inlined structs.
func fields(t reflect.Type) []reflect.StructField {
	var list []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous && jsonName(f) == "":
			list = append(list, fields(f.Type)...)
		case f.IsExported() && jsonName(f) != "-":
			list = append(list, f)
		}
	}
	return list
}

func findField(t reflect.Type, name string) reflect.StructField {
	for _, f := range fields(t) {
		if jsonName(f) == name {
			return f
		}
	}
	panic(t.String() + " has no " + name)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldName returns the name of the field at path. If path leads to an item, it returns the name of
// the list that contains the item.
func fieldName(path []string) string {
	for _, step := range slices.Backward(path) {
		if _, err := strconv.Atoi(step); err != nil {
			return step
		}
	}
	return ""
}

func child(path []string, step string) []string {
	return append(slices.Clone(path), step)
}

// isServerField reports whether only a server sets the field at path.
func isServerField(path []string) bool {
	if len(path) != 2 || path[0] != "metadata" {
		return false
	}
	switch path[1] {
	case "name", "namespace", "uid", "labels", "annotations", "finalizers":
		return false
	}
	return true
}
