package decode

import (
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"
)

// index records the position of every known field in n.fields, and records duplicate keys.
// The position of a field is that of its key, the position of an item is its own. Fields
// below an unknown key are ignored.
func (v value) index(s *shape, n *notes) {
	if v.node != nil {
		indexer{n, v.before}.walk(v.node, s, "")
	}
}

type indexer struct {
	*notes
	before int
}

func (ix indexer) walk(node *yamlv3.Node, s *shape, path string) {
	node = resolveAlias(node)
	switch {
	case node == nil || s == nil:
	case node.Kind == yamlv3.MappingNode && (s.kind == object || s.kind == dict):
		ix.mapping(node, s, path)
	case node.Kind == yamlv3.SequenceNode && s.kind == list:
		for i, item := range node.Content {
			at := path + "[" + strconv.Itoa(i) + "]"
			ix.fields[at] = place(item, ix.before)
			ix.walk(item, s.elem, at)
		}
	}
}

func (ix indexer) mapping(node *yamlv3.Node, s *shape, path string) {
	seen := map[string]int{} // line of each key
	eachPair(node, 0, func(k, v *yamlv3.Node, merged bool) {
		key := k.Value
		field := s.step(path, key)
		at := place(k, ix.before)
		if line, twice := seen[key]; twice && !merged {
			ix.lenient(at, field, "duplicate field, also on line %d, and the last value is used; remove one", line)
		}
		if !merged {
			seen[key] = int(at.Line)
		}
		ix.fields[field] = at
		ix.walk(v, s.member(key), field)
	})
}
