package config

import "maps"

// merged is the sum of layers, with the layer each value came from.
type merged struct {
	tree map[string]any
	from map[string]*layer // by field path, of every key that is there
}

func newMerged() *merged {
	return &merged{tree: map[string]any{}, from: map[string]*layer{}}
}

// apply lays l over what is there as a JSON merge patch: objects merge, null
// deletes, everything else replaces.
func (m *merged) apply(l *layer) { m.object(m.tree, l.tree, "", l) }

func (m *merged) object(into, patch map[string]any, at string, l *layer) {
	for key, value := range patch {
		path := join(at, key)
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
		m.object(old, child, path, l)
	}
}

// forget drops where the values at and below a path came from.
func (m *merged) forget(path string) {
	maps.DeleteFunc(m.from, func(p string, _ *layer) bool { return within(p, path) })
}

// origin of the value at path, or of what it is a part of; zero for a default.
func (m *merged) origin(path string) origin {
	for p := path; p != ""; p = parent(p) {
		if l, ok := m.from[p]; ok {
			return l.origin(path)
		}
	}
	return origin{}
}

// set reports whether some layer has a value at path.
func (m *merged) set(path string) bool { return m.from[path] != nil }
