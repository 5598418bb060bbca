package openapi

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// withoutTexts is a schema whose texts are but an ellipsis: they are
// Kubernetes's, and another release may have others.
func withoutTexts(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	if c.Description != "" {
		c.Description = "…"
	}
	if s.Properties != nil {
		c.Properties = map[string]*Schema{}
	}
	for name, p := range s.Properties {
		c.Properties[name] = withoutTexts(p)
	}
	return &c
}

// operationLine is one operation with its parameters and what it takes and
// gives.
func operationLine(method, path string, o *Operation) string {
	var query []string
	for _, p := range o.Parameters {
		query = append(query, p.Name)
	}
	slices.Sort(query)
	line := fmt.Sprintf("%-6s %s %s [%s]", method, path, o.ID, strings.Join(query, " "))
	if o.Body != nil {
		line += " takes " + contentWords(o.Body.Content)
	}
	return line + " gives " + contentWords(o.Responses["200"].Content)
}

func contentWords(content map[string]Media) string {
	var words []string
	for media, m := range content {
		words = append(words, media+" "+m.Schema.Type+strings.TrimPrefix(m.Schema.Ref, v3Schemas))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func goldenLines(t *testing.T, name string, lines []string) {
	t.Helper()
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	compare(t, filepath.Join("testdata", name+".txt"), strings.Join(lines, "\n")+"\n")
}

// normalize writes every value in m that stands as YAML in one way: how that is
// laid out is the writer's choice.
func normalize(t *testing.T, m protoreflect.Message) {
	if v, ok := m.Interface().(*openapiv2.Any); ok {
		var value any
		if err := yaml.Unmarshal([]byte(v.Yaml), &value); err != nil {
			t.Errorf("%q: %v", v.Yaml, err)
		}
		v.Value, v.Yaml = nil, fmt.Sprintf("%#v", value)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				normalize(t, v.List().Get(i).Message())
			}
		default:
			normalize(t, v.Message())
		}
		return true
	})
}
