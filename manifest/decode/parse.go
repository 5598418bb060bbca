package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is a parsed text: the values as the API server reads them, and the nodes that
// have their positions.
type document struct {
	part
	// tree consists of map[string]any, []any, string, bool, int64, float64 and nil. It is
	// nil for an empty document.
	tree any
	// node is the document's content; nil if there are no positions.
	node *yamlv3.Node
}

// parse parses one document.
func parse(p part) (*document, *syntaxError) {
	if tooMany(p.text) {
		return nil, &syntaxError{p.firstPosition(), fmt.Errorf("document too large: more than %d lines and items; split it", maxMarks)}
	}
	asJSON := looksLikeJSON(p.text)
	text := p.text
	if asJSON {
		text = maskEscapes(text)
	}
	node, err := nodes(text)
	if err != nil && !asJSON {
		return nil, p.syntax(err)
	}
	doc := &document{part: p, node: node}
	if node != nil {
		if err := measure(node); err != nil {
			return nil, &syntaxError{doc.root().position(), err}
		}
	}
	raw := p.text
	if !asJSON {
		if raw, err = yaml.YAMLToJSON(p.text); err != nil {
			return nil, p.syntax(err)
		}
	}
	if err := utiljson.Unmarshal(raw, &doc.tree); err != nil {
		return nil, p.syntax(err)
	}
	return doc, nil
}

// looksLikeJSON reports whether the whole text is one JSON object. The values are then
// parsed as JSON, because JSON has escapes that YAML does not have.
func looksLikeJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Valid(text)
}

// maskEscapes replaces the escapes that only JSON has, "\/" and surrogates, by others that
// YAML can parse, and preserves all columns.
func maskEscapes(text []byte) []byte {
	out := bytes.Clone(text)
	for i := 0; i+1 < len(out); i++ {
		if out[i] != '\\' {
			continue
		}
		i++ // in JSON every backslash is in a string and followed by a character
		switch {
		case out[i] == '/':
			out[i] = 't'
		case out[i] == 'u' && i+2 < len(out) && (out[i+1] == 'd' || out[i+1] == 'D') && out[i+2] >= '8':
			copy(out[i+1:], "0041")
		}
	}
	return out
}

// nodes parses a text that contains at most one document. It returns nil if there is none.
func nodes(text []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var doc, more yamlv3.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case len(doc.Content) == 0:
		return nil, nil
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: another document begins here; separate documents by a line with ---", more.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return doc.Content[0], nil
}
