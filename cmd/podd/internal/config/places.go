package config

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"podd/manifest"
)

// places finds the positions of keys and elements in a YAML text.
type places struct {
	path     string
	at       map[string]manifest.Position
	problems []manifest.Problem
	nodes    int
}

// maxNodes limits the walk; a usual file has about 100 nodes.
const maxNodes = 100_000

// document walks the first document and warns of others, which are ignored. If yaml.v3
// rejects a text that sigs.k8s.io/yaml has accepted, there are no positions.
func (w *places) document(data []byte) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if d.Decode(&doc) != nil || len(doc.Content) == 0 {
		return
	}
	w.node(doc.Content[0], "")
	if err := d.Decode(&more); err == nil || !errors.Is(err, io.EOF) {
		w.warn(position(&more), "", "a second document is not read; put it into a file of its own")
	}
}

func (w *places) node(n *yaml.Node, at string) {
	if w.nodes++; w.nodes > maxNodes {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			path := join(at, key.Value)
			if seen[key.Value] {
				w.warn(position(key), path, "repeated; the last one counts")
			}
			seen[key.Value] = true
			w.at[path] = position(key)
			w.node(n.Content[i+1], path)
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			w.at[index(at, i)] = position(element)
			w.node(element, index(at, i))
		}
	}
}

func (w *places) warn(pos manifest.Position, field, message string) {
	w.problems = append(w.problems, origin{path: w.path, pos: pos}.problem(manifest.Warning, field, message))
}

func position(n *yaml.Node) manifest.Position {
	return manifest.Position{Line: uint32(max(n.Line, 0)), Column: uint32(max(n.Column, 0))}
}
