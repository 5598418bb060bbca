package document

import (
	"errors"

	yamlv3 "go.yaml.in/yaml/v3"

	"podd/manifest"
)

// A Node is a value in the text of a document. The zero Node is unknown.
type Node struct {
	yaml *yamlv3.Node // nil if unknown
	// linesBefore is the number of lines of the file before the node's document.
	linesBefore int
	// fallbackPosition is the position of an unknown node.
	fallbackPosition manifest.Position
}

// Position returns the position at which the value begins. For an alias, this is the position
// of the alias.
func (n Node) Position() manifest.Position {
	if n.yaml == nil {
		return n.fallbackPosition
	}
	return manifest.Position{Line: uint32(n.yaml.Line + n.linesBefore), Column: uint32(n.yaml.Column)}
}

// KeyPosition returns the position of a key of an object. If the key occurs more than once,
// KeyPosition returns the last position, because the last value is used. ok is false if the
// object does not contain the key, or if n is not an object.
func (n Node) KeyPosition(key string) (at manifest.Position, ok bool) {
	n.EachMember(func(m Member) {
		if m.Key == key {
			at, ok = m.Position, true
		}
	})
	return at, ok
}

// A Member is a key and a value of an object.
type Member struct {
	Key      string
	Position manifest.Position // position of the key
	Value    Node
	// IsMerged reports whether the YAML key "<<" merged the member into the object.
	IsMerged bool
}

// EachMember calls visit for the members of an object in the order of the text. It does not
// call visit if n is not an object.
func (n Node) EachMember(visit func(Member)) {
	eachPair(n.resolve().yaml, 0, func(k, v *yamlv3.Node, isMerged bool) {
		visit(Member{k.Value, n.child(k).Position(), n.child(v), isMerged})
	})
}

// Elements returns the elements of a list. It returns nil if n is not a list.
func (n Node) Elements() []Node {
	list := n.resolve()
	if list.yaml == nil || list.yaml.Kind != yamlv3.SequenceNode {
		return nil
	}
	elements := make([]Node, len(list.yaml.Content))
	for i, element := range list.yaml.Content {
		elements[i] = n.child(element)
	}
	return elements
}

// member returns the value at a key of an object. The result is an unknown Node if the object does
// not contain the key.
func (n Node) member(key string) (value Node) {
	n.EachMember(func(m Member) {
		if m.Key == key {
			value = m.Value
		}
	})
	return value
}

// HasValue reports whether a value is written for a key of an object. It returns false if nothing
// follows the key, although YAML reads this as null.
func (n Node) HasValue(key string) bool {
	value := n.member(key).yaml
	return value != nil && (value.Kind != yamlv3.ScalarNode || value.Value != "" || value.Tag != "!!null")
}

// child returns a node of the same document.
func (n Node) child(y *yamlv3.Node) Node { return Node{yaml: y, linesBefore: n.linesBefore} }

// resolve returns n or, if n is an alias, the node to which n refers.
func (n Node) resolve() Node {
	n.yaml = resolveAlias(n.yaml)
	return n
}

// resolveAlias follows aliases. checkExpansion has verified that no alias refers to itself.
func resolveAlias(n *yamlv3.Node) *yamlv3.Node {
	for n != nil && n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	return n
}

// eachPair calls visit for the keys and values of a mapping in the order of the text. isMerged is
// true for a key that is not in n itself but in a mapping that "<<" merges into n.
func eachPair(n *yamlv3.Node, depth int, visit func(k, v *yamlv3.Node, isMerged bool)) {
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

// checkExpansion returns an error if a document is nested too deeply, or if its aliases expand to
// too much data. It treats an alias inside its own anchor as nested too deeply.
// checkExpansion must be called before any alias is expanded.
func checkExpansion(n *yamlv3.Node) error {
	m := expansionMeter{}
	return m.add(n, 0, false)
}

// expansionMeter counts the nodes that aliases add to a document, and the bytes of their values.
type expansionMeter struct{ nodes, bytes int }

var (
	errTooDeep           = errors.New("the document is nested too deeply (limit 100 levels)")
	errExpansionTooLarge = errors.New("the YAML aliases of the document expand to too much data; replace them with their values")
)

func (m *expansionMeter) add(n *yamlv3.Node, depth int, isAlias bool) error {
	if depth > maxDepth {
		return errTooDeep
	}
	if isAlias {
		m.nodes++
		m.bytes += len(n.Value)
		if m.nodes > maxExpandedNodes || m.bytes > maxExpandedBytes {
			return errExpansionTooLarge
		}
	}
	if n.Kind == yamlv3.AliasNode {
		return m.add(n.Alias, depth+1, true)
	}
	for _, c := range n.Content {
		if err := m.add(c, depth+1, isAlias); err != nil {
			return err
		}
	}
	return nil
}
