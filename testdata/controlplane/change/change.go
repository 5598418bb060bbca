// Package change makes changes to fields of pods.
package change

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Change sets or removes one field of a pod. Path contains the keys and list indexes that
// lead to the field. If an index is equal to the length of its list, Apply appends to the list.
type Change struct {
	Path   []string `json:"path"`
	Value  any      `json:"value"`
	Remove bool     `json:"remove,omitempty"`
}

// Apply applies the change to a tree of JSON values and returns the tree.
func (c Change) Apply(tree any) any {
	return c.walk(tree, c.Path)
}

func (c Change) walk(tree any, path []string) any {
	if len(path) == 0 {
		return Clone(c.Value)
	}
	if list, ok := tree.([]any); ok {
		i, _ := strconv.Atoi(path[0])
		switch {
		case i == len(list):
			list = append(list, nil)
		case c.Remove && len(path) == 1:
			return append(list[:i], list[i+1:]...)
		}
		list[i] = c.walk(list[i], path[1:])
		return list
	}
	m, ok := tree.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	if c.Remove && len(path) == 1 {
		delete(m, path[0])
		return m
	}
	m[path[0]] = c.walk(m[path[0]], path[1:])
	return m
}

// Clone returns a deep copy of a tree.
func Clone(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// Parse parses changes on one line. Each change is "field.path=JSON", and blanks separate the
// changes. The JSON must not contain a blank before a field name.
func Parse(text string) []Change {
	var set []Change
	for _, changeText := range strings.Split(strings.NewReplacer(" spec.", "\nspec.", " metadata.", "\nmetadata.").Replace(text), "\n") {
		path, value, _ := strings.Cut(changeText, "=")
		c := Change{Path: strings.Split(path, ".")}
		if err := json.Unmarshal([]byte(value), &c.Value); err != nil {
			panic(changeText + ": " + err.Error())
		}
		set = append(set, c)
	}
	return set
}
