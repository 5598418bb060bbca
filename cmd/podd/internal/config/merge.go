package config

import (
	"maps"

	"podd/manifest"
	"podd/manifest/schema"
)

// merged is the result of merging layers.
type merged struct {
	tree map[string]any
	from map[string]*layer // the layer of every key in tree, by field path
}

func newMerged() *merged {
	return &merged{tree: map[string]any{}, from: map[string]*layer{}}
}

// apply merges l as a JSON merge patch: objects are merged, null deletes, and everything
// else replaces.
func (m *merged) apply(l *layer) { m.mergeObject(m.tree, l.tree, kubeletSchema(), "", l) }

// mergeObject merges a patch, which is a part of l, into the object at a field path. s is the
// schema of the object, or nil if it is unknown.
func (m *merged) mergeObject(into, patch map[string]any, s *schema.Schema, at string, l *layer) {
	for key, value := range patch {
		path := s.Path(at, key)
		child, isObject := value.(map[string]any)
		if !isObject {
			m.forget(path)
			if value == nil {
				delete(into, key)
				continue
			}
			into[key] = value
			m.from[path] = l
			continue
		}
		old, ok := into[key].(map[string]any)
		if !ok || l.replaces(path) {
			m.forget(path)
			old = map[string]any{}
			into[key] = old
		}
		m.from[path] = l
		m.mergeObject(old, child, s.Member(key), path, l)
	}
}

// forget removes the layers of the values at and below a path.
func (m *merged) forget(path string) {
	maps.DeleteFunc(m.from, func(p string, _ *layer) bool { return isWithin(p, path) })
}

// origin returns the position of the value at path, or of an enclosing one; zero for a
// default.
func (m *merged) origin(path string) origin {
	for p := path; p != ""; p = manifest.ParentField(p) {
		if l, ok := m.from[p]; ok {
			return l.origin(path)
		}
	}
	return origin{}
}

// isSet reports whether a layer has a value at path.
func (m *merged) isSet(path string) bool { return m.from[path] != nil }
