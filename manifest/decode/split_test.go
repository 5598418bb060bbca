package decode

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// FuzzSplit: where the YAML library reads a whole text as documents, split cuts
// the same text into the same documents, each on the line where it stands.
func FuzzSplit(f *testing.F) {
	paths, err := filepath.Glob("../../testdata/manifests/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d manifests, %v", len(paths), err)
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
		parts, err := split(data)
		if err != nil || exotic(data) {
			return
		}
		want, err := wholeText(data)
		if err != nil {
			return
		}
		var got []standing
		for _, p := range parts {
			node, err := nodes(p.text)
			if err != nil {
				t.Fatalf("split breaks a document: %v\n%q of %q", err, p.text, data)
			}
			if node != nil && node.Tag != "!!null" {
				got = append(got, standing{node.Kind, node.Value, node.Line + p.before, node.Column})
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d documents, want %d: %q", len(got), len(want), data)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("document %d is %v, want %v: %q", i, got[i], want[i], data)
			}
		}
	})
}

// exotic are the line breaks of YAML 1.1 that no editor counts as one.
func exotic(data []byte) bool {
	for _, mark := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(data, []byte(mark)) {
			return true
		}
	}
	return false
}

// standing is what is compared of a document.
type standing struct {
	kind         yamlv3.Kind
	value        string
	line, column int
}

// wholeText is what the library makes of a text, empty documents left out.
func wholeText(data []byte) ([]standing, error) {
	var out []standing
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
			out = append(out, standing{n.Kind, n.Value, n.Line, n.Column})
		}
	}
}
