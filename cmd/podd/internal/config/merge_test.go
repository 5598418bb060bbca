package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMerge runs the test cases of RFC 7386, appendix A, in which both values are objects.
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
		{`{"e":null}`, `{"a":1}`, `{"a":1}`}, // null in the first layer has no effect, either
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

// jsonLayer returns a layer with a tree.
func jsonLayer(t *testing.T, path, text string) *layer {
	t.Helper()
	l := &layer{path: path}
	if err := json.Unmarshal([]byte(text), &l.tree); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMerge_Origins checks that the origin of each value is the last layer that has set the
// value, and that no other origins are recorded.
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
				t.Fatalf("%s = %v: no layer", path, value)
			}
			inLayer := lookup(l.tree, path)
			if _, isObject := value.(map[string]any); !isObject && !cmp.Equal(inLayer, value) {
				t.Fatalf("%s = %v: got layer %s, which has %v", path, value, l.path, inLayer)
			}
		})
		if count != len(m.layersByPath) {
			t.Fatalf("got %d origins for %d values: %v for %v", len(m.layersByPath), count, m.layersByPath, m.tree)
		}
	})
}

// drawObject returns a random object.
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

// lookup returns the value at a field path.
func lookup(tree map[string]any, path string) (found any) {
	eachNode(tree, "", func(p string, v any) {
		if p == path {
			found = v
		}
	})
	return found
}

// eachNode calls visit for all values in a tree.
func eachNode(tree map[string]any, at string, visit func(string, any)) {
	for key, value := range tree {
		visit(joinField(at, key), value)
		if child, ok := value.(map[string]any); ok {
			eachNode(child, joinField(at, key), visit)
		}
	}
}
