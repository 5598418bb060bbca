package document

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

// A Value is a parsed document, or a part of one.
type Value struct {
	// Tree consists of map[string]any, []any, string, bool, int64, float64 and nil. It is
	// nil for an empty document.
	Tree any
	Node
}

// Parse parses one document.
func Parse(p Part) (Value, *SyntaxError) {
	if hasTooManyIndicators(p.text) {
		return Value{}, &SyntaxError{p.firstPosition(), fmt.Errorf("the document is too large: more than %d lines and items; split it", maxIndicators)}
	}
	isJSON := looksLikeJSON(p.text)
	text := p.text
	if isJSON {
		text = maskEscapes(text)
	}
	node, err := parseYAML(text)
	if err != nil && !isJSON {
		return Value{}, p.newSyntaxError(err)
	}
	v := Value{Node: Node{yaml: node, linesBefore: p.linesBefore, fallbackPosition: p.firstPosition()}}
	if node != nil {
		if err := checkExpansion(node); err != nil {
			return Value{}, &SyntaxError{v.Position(), err}
		}
	}
	jsonText := p.text
	if !isJSON {
		if jsonText, err = yaml.YAMLToJSON(p.text); err != nil {
			return Value{}, p.newSyntaxError(err)
		}
	}
	if err := utiljson.Unmarshal(jsonText, &v.Tree); err != nil {
		return Value{}, p.newSyntaxError(err)
	}
	return v, nil
}

// Items returns the elements of the list at a key of an object. The result is empty if the value at
// the key is not a list.
func (v Value) Items(key string) []Value {
	object, _ := v.Tree.(map[string]any)
	list, _ := object[key].([]any)
	nodes := v.member(key).Elements()
	items := make([]Value, len(list))
	for i := range list {
		items[i] = Value{Tree: list[i], Node: Node{linesBefore: v.linesBefore, fallbackPosition: v.Position()}}
		if i < len(nodes) {
			items[i].yaml = nodes[i].resolve().yaml
		}
	}
	return items
}

// looksLikeJSON reports whether the whole text is one JSON object. If so, the values are parsed as
// JSON, because JSON has escapes that YAML does not have.
func looksLikeJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Valid(text)
}

// maskEscapes replaces escapes that YAML cannot parse: "\/" and surrogates. The replacements are
// escapes of the same length, so that all columns stay the same.
func maskEscapes(text []byte) []byte {
	masked := bytes.Clone(text)
	for i := 0; i+1 < len(masked); i++ {
		if masked[i] != '\\' {
			continue
		}
		i++ // masked[i] is now the character after the backslash; in JSON every backslash begins an escape
		switch {
		case masked[i] == '/':
			masked[i] = 't'
		case masked[i] == 'u' && i+2 < len(masked) && (masked[i+1] == 'd' || masked[i+1] == 'D') && masked[i+2] >= '8':
			copy(masked[i+1:], "0041")
		}
	}
	return masked
}

// parseYAML parses a text that contains at most one document. It returns nil if the text
// contains no document.
func parseYAML(text []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var doc, nextDoc yamlv3.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case len(doc.Content) == 0:
		return nil, nil
	}
	switch err := decoder.Decode(&nextDoc); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: another document begins here; separate documents by a line with ---", nextDoc.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return doc.Content[0], nil
}
