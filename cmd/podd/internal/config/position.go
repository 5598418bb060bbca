package config

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"podd/manifest"
)

// A positionFinder finds the positions of keys and list elements in a YAML document.
type positionFinder struct {
	path     string
	at       map[string]manifest.Position
	problems []manifest.Problem
	nodes    int
}

// maxNodes limits the nodes that are visited. A usual file has about 100.
const maxNodes = 100_000

// findAll finds the positions in the first document. It warns of further documents, which
// are ignored. If yaml.v3 rejects data that sigs.k8s.io/yaml has accepted, there are no
// positions.
func (f *positionFinder) findAll(data []byte) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if d.Decode(&doc) != nil || len(doc.Content) == 0 {
		return
	}
	f.node(doc.Content[0], "")
	if err := d.Decode(&more); err == nil || !errors.Is(err, io.EOF) {
		f.warn(position(&more), "", "only the first document is read; move this one to its own file")
	}
}

func (f *positionFinder) node(n *yaml.Node, at string) {
	if f.nodes++; f.nodes > maxNodes {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			path := join(at, key.Value)
			if seen[key.Value] {
				f.warn(position(key), path, "duplicate field; the last value is used")
			}
			seen[key.Value] = true
			f.at[path] = position(key)
			f.node(n.Content[i+1], path)
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			f.at[index(at, i)] = position(element)
			f.node(element, index(at, i))
		}
	}
}

func (f *positionFinder) warn(pos manifest.Position, field, message string) {
	f.problems = append(f.problems, origin{path: f.path, pos: pos}.problem(manifest.Warning, field, message))
}

func position(n *yaml.Node) manifest.Position {
	return manifest.Position{Line: uint32(max(n.Line, 0)), Column: uint32(max(n.Column, 0))}
}
