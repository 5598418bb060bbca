package decode

import (
	"errors"

	yamlv3 "go.yaml.in/yaml/v3"

	"podd/manifest"
)

// value is a part of a document with its position.
type value struct {
	tree any
	node *yamlv3.Node // nil if unknown
	// before is the number of lines of the text before the node's document.
	before int
	// fallback is the position of a value without a node.
	fallback manifest.Position
}

func (d *document) root() value {
	return value{tree: d.tree, node: d.node, before: d.before, fallback: d.firstPosition()}
}

// position returns where the value begins.
func (v value) position() manifest.Position {
	if v.node == nil {
		return v.fallback
	}
	return place(v.node, v.before)
}

func place(n *yamlv3.Node, before int) manifest.Position {
	return manifest.Position{Line: uint32(n.Line + before), Column: uint32(n.Column)}
}

// items returns the elements of the list at a key; none if it is not a list.
func (v value) items(key string) []value {
	object, _ := v.tree.(map[string]any)
	list, _ := object[key].([]any)
	node := child(v.node, key)
	out := make([]value, len(list))
	for i := range list {
		out[i] = value{tree: list[i], before: v.before, fallback: v.position()}
		if node != nil && node.Kind == yamlv3.SequenceNode && i < len(node.Content) {
			out[i].node = resolveAlias(node.Content[i])
		}
	}
	return out
}

// child returns the value at a key of a mapping, or nil.
func child(n *yamlv3.Node, key string) *yamlv3.Node {
	var found *yamlv3.Node
	eachPair(resolveAlias(n), 0, func(k, v *yamlv3.Node, _ bool) {
		if k.Value == key {
			found = resolveAlias(v)
		}
	})
	return found
}

// resolveAlias follows aliases. measure has verified that they end.
func resolveAlias(n *yamlv3.Node) *yamlv3.Node {
	for n != nil && n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	return n
}

// eachPair visits the keys and values of a mapping in order, and those merged by "<<" with
// merged true.
func eachPair(n *yamlv3.Node, depth int, visit func(k, v *yamlv3.Node, merged bool)) {
	if n == nil || n.Kind != yamlv3.MappingNode || depth > maxDepth {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			visit(resolveAlias(k), v, depth > 0)
			continue
		}
		sources := []*yamlv3.Node{resolveAlias(v)}
		if sources[0] != nil && sources[0].Kind == yamlv3.SequenceNode {
			sources = sources[0].Content
		}
		for _, source := range sources {
			eachPair(resolveAlias(source), depth+1, visit)
		}
	}
}

// measure refuses documents that are nested too deep, including an alias inside its own
// anchor, and aliases that expand too much. It runs before any alias is expanded.
func measure(n *yamlv3.Node) error {
	m := meter{}
	return m.add(n, 0, false)
}

type meter struct{ nodes, bytes int }

var (
	errDeep    = errors.New("document nested too deeply (limit 100 levels)")
	errAliases = errors.New("aliases expand to too much data; replace them with their values")
)

func (m *meter) add(n *yamlv3.Node, depth int, aliased bool) error {
	if depth > maxDepth {
		return errDeep
	}
	if aliased {
		m.nodes++
		m.bytes += len(n.Value)
		if m.nodes > maxExpanded || m.bytes > maxExpandedBytes {
			return errAliases
		}
	}
	if n.Kind == yamlv3.AliasNode {
		return m.add(n.Alias, depth+1, true)
	}
	for _, c := range n.Content {
		if err := m.add(c, depth+1, aliased); err != nil {
			return err
		}
	}
	return nil
}
