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
	sets [][]change.Change
	seen map[string]int // counts by field, with "*" for indexes
}

// often is the number of places in which a field is set to all of its values.
const often = 2

// cases returns the changes of all cases of a base.
func (m *mutator) cases(b base) [][]change.Change {
	if b.fixed {
		return nil
	}
	m.sets = nil
	pod := b.pod.(map[string]any)
	t := reflect.TypeFor[v1.Pod]()
	for _, top := range []string{"metadata", "spec"} {
		m.walk(pod[top], fieldOf(t, top).Type, []string{top})
	}
	return append(m.sets, pairs(b)...)
}

// enough counts the places in which a field was changed in a way, and reports whether their
// number exceeds places.
func (m *mutator) enough(what string, path []string, places int) bool {
	key := what
	for _, step := range path {
		if _, err := strconv.Atoi(step); err == nil {
			step = "*"
		}
		key += "." + step
	}
	m.seen[key]++
	return m.seen[key] > places
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
	if !m.enough("type", path, 1) {
		m.set(path, wrongType(t)...)
	}
	switch {
	case custom(t) || scalar(t):
		if m.enough("value", path, often) {
			return
		}
		m.set(path, values(t, nameOf(path))...)
	case t.Kind() == reflect.Struct:
		m.object(v, t, path)
	case t.Kind() == reflect.Map:
		m.dict(v, t, path)
	case t.Kind() == reflect.Slice:
		m.list(v, t, path)
	}
}

// object adds the cases for each field of an object: for a field that the base has, all values,
// and for another field, the values of its type.
func (m *mutator) object(v any, t reflect.Type, path []string) {
	if len(path) > 1 {
		m.set(path, map[string]any{})
	}
	has, _ := v.(map[string]any)
	for _, f := range fields(t) {
		name, at := jsonName(f), child(path, jsonName(f))
		if skipped(at) {
			continue
		}
		if value, ok := has[name]; ok {
			m.remove(at)
			m.walk(value, f.Type, at)
			continue
		}
		if m.enough("lack", at, 1) {
			continue
		}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case custom(ft) || scalar(ft):
			m.set(at, values(ft, name)...)
		case ft.Kind() == reflect.Slice:
			m.set(at, []any{}, []any{zero(ft.Elem())})
		default:
			m.set(at, map[string]any{})
		}
	}
}

func (m *mutator) dict(v any, t reflect.Type, path []string) {
	m.set(path, nil, map[string]any{})
	has, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(has)) {
		m.remove(child(path, key))
		m.walk(has[key], t.Elem(), child(path, key))
		for _, wrong := range keys {
			m.set(child(path, wrong), has[key])
		}
		if t.Key() == reflect.TypeFor[v1.ResourceName]() {
			for _, name := range resourceNames {
				m.set(child(path, name), has[key], "0", "1500m", "4Mi")
			}
		}
	}
}

func (m *mutator) list(v any, t reflect.Type, path []string) {
	has, _ := v.([]any)
	m.set(path, nil, []any{})
	end := child(path, strconv.Itoa(len(has)))
	m.set(end, zero(t.Elem()))
	for i := range has {
		at := child(path, strconv.Itoa(i))
		m.remove(at)
		m.set(end, has[i]) // a duplicate
		m.walk(has[i], t.Elem(), at)
		if item, ok := has[i].(map[string]any); ok && item["name"] != nil {
			other := change.Clone(item).(map[string]any)
			other["name"] = "another"
			m.set(end, other) // a duplicate with another name
		}
	}
	if scalar(t.Elem()) {
		many := make([]any, 40)
		for i := range many {
			many[i] = "a" + strconv.Itoa(i)
		}
		m.set(path, many)
	}
}

// wrongType returns values that no field of a type can have.
func wrongType(t reflect.Type) []any {
	switch {
	case t == reflect.TypeFor[resource.Quantity](), t == reflect.TypeFor[intstr.IntOrString]():
		return []any{true, []any{}}
	case custom(t):
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

// custom reports whether a type has its own JSON decoder.
func custom(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

func scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		return false
	}
	return true
}

func zero(t reflect.Type) any {
	switch {
	case scalar(t) && t.Kind() == reflect.String:
		return ""
	case scalar(t):
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

func fieldOf(t reflect.Type, name string) reflect.StructField {
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

// nameOf returns the name of a field, or of the list that contains the item.
func nameOf(path []string) string {
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

// skipped reports whether only a server sets the field.
func skipped(path []string) bool {
	if len(path) != 2 || path[0] != "metadata" {
		return false
	}
	switch path[1] {
	case "name", "namespace", "uid", "labels", "annotations", "finalizers":
		return false
	}
	return true
}
