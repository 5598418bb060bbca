package main

import (
	"encoding/json"
	"strconv"
)

// change sets one field of a pod, or removes it. Path has the keys and, of a
// list, the indexes on the way to the field; an index that is the list's length
// appends to it.
type change struct {
	Path   []string `json:"path"`
	Value  any      `json:"value"`
	Remove bool     `json:"remove,omitempty"`
}

// apply changes a tree and returns it.
func (c change) apply(tree any) any {
	return c.walk(tree, c.Path)
}

func (c change) walk(tree any, path []string) any {
	if len(path) == 0 {
		return clone(c.Value)
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

// clone copies a tree.
func clone(v any) any {
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
