package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMerge runs the test cases of RFC 7386, appendix A, in which the original and the patch are objects.
func TestMerge(t *testing.T) {
	tests := []struct{ original, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1}`}, // unlike in the RFC, null in the first layer also removes the field
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	}
	for _, tt := range tests {
		m := newMergedTree()
		m.apply(jsonLayer(t, "1", tt.original))
		m.apply(jsonLayer(t, "2", tt.patch))
		if diff := cmp.Diff(jsonLayer(t, "", tt.want).tree, m.tree); diff != "" {
			t.Errorf("%s patched with %s (-want +got):\n%s", tt.original, tt.patch, diff)
		}
	}
}

// jsonLayer returns a layer with a path and the tree in a JSON object.
func jsonLayer(t *testing.T, path, text string) *layer {
	t.Helper()
	l := &layer{path: path}
	if err := json.Unmarshal([]byte(text), &l.tree); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMerge_Origins checks that layersByPath maps each value of the merged tree to the layer that set
// the value last, and that it contains nothing else.
func TestMerge_Origins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMergedTree()
		for _, name := range []string{"1", "2", "3"} {
			m.apply(&layer{path: name, tree: drawObject(t, 3)})
		}
		count := 0
		eachNode(m.tree, "", func(path string, value any) {
			count++
			l := m.layersByPath[path]
			if l == nil {
				t.Fatalf("%s = %v: layersByPath contains no layer", path, value)
			}
			inLayer := lookup(l.tree, path)
			if _, isObject := value.(map[string]any); !isObject && !cmp.Equal(inLayer, value) {
				t.Fatalf("%s = %v: got layer %s, in which the value is %v", path, value, l.path, inLayer)
			}
		})
		if count != len(m.layersByPath) {
			t.Fatalf("got %d layers for %d values, want as many layers as values: %v for %v", len(m.layersByPath), count, m.layersByPath, m.tree)
		}
	})
}

// drawObject returns a random object in which objects are nested at most depth levels deep.
func drawObject(t *rapid.T, depth int) map[string]any {
	o := map[string]any{}
	for _, key := range []string{"a", "b", "c.d"} {
		switch rapid.SampledFrom([]string{"none", "null", "leaf", "list", "object"}).Draw(t, "kind") {
		case "null":
			o[key] = nil
		case "leaf":
			o[key] = rapid.IntRange(0, 3).Draw(t, "leaf")
		case "list":
			o[key] = []any{1}
		case "object":
			if depth > 0 {
				o[key] = drawObject(t, depth-1)
			}
		}
	}
	return o
}

// lookup returns the value at a field path, or nil if there is none.
func lookup(tree map[string]any, path string) (found any) {
	eachNode(tree, "", func(p string, v any) {
		if p == path {
			found = v
		}
	})
	return found
}

// eachNode calls visit with the path and value of each field in a tree. parent is the path of the tree.
func eachNode(tree map[string]any, parent string, visit func(string, any)) {
	for key, value := range tree {
		visit(joinField(parent, key), value)
		if child, ok := value.(map[string]any); ok {
			eachNode(child, joinField(parent, key), visit)
		}
	}
}
