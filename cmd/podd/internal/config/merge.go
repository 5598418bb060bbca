package config

import (
	"maps"

	"podd/manifest"
	"podd/manifest/schema"
)

// A mergedTree is the result of merging layers.
type mergedTree struct {
	tree         map[string]any
	layersByPath map[string]*layer // the last layer that has set a value of tree, by field path
}

func newMergedTree() *mergedTree {
	return &mergedTree{tree: map[string]any{}, layersByPath: map[string]*layer{}}
}

// apply merges l into m as a JSON merge patch (RFC 7386). Objects are merged, null deletes a
// value, and any other value replaces the value in m.
func (m *mergedTree) apply(l *layer) { m.mergeObject(m.tree, l.tree, kubeletSchema(), "", l) }

// mergeObject merges two objects. patch is an object of the layer l. base is the object of m that
// is modified. fieldPath is the field path of both objects. s is the schema of the objects, or nil
// if the field is unknown.
func (m *mergedTree) mergeObject(base, patch map[string]any, s *schema.Schema, fieldPath string, l *layer) {
	for key, value := range patch {
		path := s.AppendPath(fieldPath, key)
		child, isObject := value.(map[string]any)
		if !isObject {
			m.forgetLayers(path)
			if value == nil {
				delete(base, key)
				continue
			}
			base[key] = value
			m.layersByPath[path] = l
			continue
		}
		object, ok := base[key].(map[string]any)
		if !ok || l.replaces(path) {
			m.forgetLayers(path)
			object = map[string]any{}
			base[key] = object
		}
		m.layersByPath[path] = l
		m.mergeObject(object, child, s.Member(key), path, l)
	}
}

// forgetLayers removes the entries in layersByPath for the value at path and all values below it.
func (m *mergedTree) forgetLayers(path string) {
	maps.DeleteFunc(m.layersByPath, func(p string, _ *layer) bool { return isWithin(p, path) })
}

// origin returns the position of the value at path, or the position of the nearest enclosing value.
// It returns the zero origin if no layer has set the value, because the value is then a default.
func (m *mergedTree) origin(path string) origin {
	for p := path; p != ""; p = manifest.ParentField(p) {
		if l, ok := m.layersByPath[p]; ok {
			return l.origin(path)
		}
	}
	return origin{}
}

// isSet reports whether a layer has set the value at path.
func (m *mergedTree) isSet(path string) bool { return m.layersByPath[path] != nil }

// isDerived reports whether the value at path follows from another field, and no layer contains it.
func (m *mergedTree) isDerived(path string) bool {
	l := m.layersByPath[path]
	return l != nil && l.derived[path]
}

// isSetByFlag reports whether a flag has set the value at path.
func (m *mergedTree) isSetByFlag(path string) bool {
	l := m.layersByPath[path]
	return l != nil && l.flags[path] != ""
}

// valueOr returns v, the value at path, or def if v is zero and no flag has set it. As in the kubelet, 0
// means the default in a file. On the command line, 0 is a value, because the kubelet parses its flags
// into a configuration that already contains the defaults.
func valueOr[T comparable](m *mergedTree, path string, v, def T) T {
	var zero T
	if v == zero && !m.isSetByFlag(path) {
		return def
	}
	return v
}
