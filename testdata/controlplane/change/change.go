// Package change makes a pod of another by setting fields of it.
package change

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Change sets one field of a pod, or removes it. Path has the keys and, of a
// list, the indexes on the way to the field; an index that is the list's length
// appends to it.
type Change struct {
	Path   []string `json:"path"`
	Value  any      `json:"value"`
	Remove bool     `json:"remove,omitempty"`
}

// Apply changes a tree and returns it.
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

// Clone copies a tree.
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

// Parse reads changes of one line, each "field.path=JSON". No JSON in it has a blank before a field's name.
func Parse(text string) []Change {
	var set []Change
	for _, one := range strings.Split(strings.NewReplacer(" spec.", "\nspec.", " metadata.", "\nmetadata.").Replace(text), "\n") {
		path, value, _ := strings.Cut(one, "=")
		c := Change{Path: strings.Split(path, ".")}
		if err := json.Unmarshal([]byte(value), &c.Value); err != nil {
			panic(one + ": " + err.Error())
		}
		set = append(set, c)
	}
	return set
}
