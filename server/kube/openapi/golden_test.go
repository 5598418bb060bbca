package openapi

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podd/runtime/runtimetest/golden"
)

// withoutTexts returns a copy of a schema in which an ellipsis replaces each description. The
// descriptions come from Kubernetes and differ between its releases.
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

// operationLine formats an operation with its parameters and the media types of the
// request and the response.
func operationLine(method, path string, o *Operation) string {
	var query []string
	for _, p := range o.Parameters {
		query = append(query, p.Name)
	}
	slices.Sort(query)
	line := fmt.Sprintf("%-6s %s %s [%s]", method, path, o.ID, strings.Join(query, " "))
	if o.Body != nil {
		line += " takes " + contentLine(o.Body.Content)
	}
	return line + " gives " + contentLine(o.Responses["200"].Content)
}

func contentLine(content map[string]Media) string {
	var parts []string
	for media, m := range content {
		parts = append(parts, media+" "+m.Schema.Type+strings.TrimPrefix(m.Schema.Ref, schemasPath))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func goldenLines(t *testing.T, name string, lines []string) {
	t.Helper()
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	golden.Compare(t, filepath.Join("testdata", name+".txt"), strings.Join(lines, "\n")+"\n")
}
