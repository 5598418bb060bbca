package document

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// FuzzSplit checks that, if the YAML library can decode the whole text, Split returns the same
// documents at the same lines.
func FuzzSplit(f *testing.F) {
	paths, err := filepath.Glob("../../testdata/manifests/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("got %d manifests, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("--- |\n ---\n ...\n--- >\n a\n...\n# c\n%YAML 1.1\n--- 'a\n --- b'\n---\n--- # c\nd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, err := Split(data)
		if err != nil || hasUnicodeBreak(data) {
			return
		}
		want, err := decodeAll(data)
		if err != nil {
			return
		}
		var got []comparedDocument
		for _, p := range parts {
			node, err := parseYAML(p.text)
			if err != nil {
				t.Fatalf("Split returned an invalid document: %v\n%q of %q", err, p.text, data)
			}
			if node != nil && node.Tag != "!!null" {
				got = append(got, comparedDocument{node.Kind, node.Value, node.Line + p.linesBefore, node.Column})
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %d documents, want %d; text: %q", len(got), len(want), data)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("document %d: got %v, want %v; text: %q", i, got[i], want[i], data)
			}
		}
	})
}

// hasUnicodeBreak reports whether a text contains a line break of YAML 1.1 that editors do not
// count as a line.
func hasUnicodeBreak(data []byte) bool {
	for _, mark := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(data, []byte(mark)) {
			return true
		}
	}
	return false
}

// comparedDocument contains the compared properties of a document.
type comparedDocument struct {
	kind         yamlv3.Kind
	value        string
	line, column int
}

// decodeAll returns the documents of a text, as the YAML library decodes them. It omits empty
// documents.
func decodeAll(data []byte) ([]comparedDocument, error) {
	var out []comparedDocument
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var doc yamlv3.Node
		if err := decoder.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			return nil, err
		}
		if len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" {
			n := doc.Content[0]
			out = append(out, comparedDocument{n.Kind, n.Value, n.Line, n.Column})
		}
	}
}
