package schema

import (
	"maps"
	"slices"
	"strings"

	"podd/manifest/wording"
)

// unknownField returns the message for a key that the struct s does not contain. If exactly one
// field of the whole document has this name, the message suggests its path. Otherwise it
// suggests the field of s with the most similar name.
func (c *checker) unknownField(s *Schema, key string) string {
	if c.paths == nil {
		c.paths = map[string]string{}
		c.root.addPaths("", c.paths, map[*Schema]bool{})
	}
	path := c.paths[key]
	closest := wording.FindClosest(key, slices.Sorted(maps.Keys(s.fields)))
	switch {
	case path != "" && path == key:
		return `unknown field; did you mean "` + path + `" at the top level?`
	case path != "":
		return `unknown field; did you mean "` + path + `"?`
	case closest != "":
		return `unknown field; did you mean "` + closest + `"?`
	}
	return "unknown field; remove it"
}

// addPaths adds the paths of all fields in or below the struct s to the map paths, by field name.
// The path of a name that occurs more than once is "". Fields of list elements are not included.
// outer contains the structs that contain s. addPaths skips these structs, because a type may contain
// itself.
func (s *Schema) addPaths(path string, paths map[string]string, outer map[*Schema]bool) {
	if s.kind != object || outer[s] {
		return
	}
	outer[s] = true
	for name, field := range s.fields {
		p := s.AppendPath(path, name)
		if _, ok := paths[name]; ok {
			p = ""
		}
		paths[name] = p
		field.addPaths(strings.TrimPrefix(path+"."+name, "."), paths, outer)
	}
	delete(outer, s)
}
