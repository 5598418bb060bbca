package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// metricNames returns the names of all metrics that the source of the kubelet declares, one a line. It reads
// the source because a kubelet serves a metric with labels only after its first event.
func metricNames() (string, error) {
	s, err := readSource()
	if err != nil {
		return "", err
	}
	names := map[string]bool{}
	for _, f := range s.files {
		if err := s.addNames(f, names); err != nil {
			return "", err
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n", nil
}

// addNames adds the names of the metrics that a file declares: those in literals of types such as CounterOpts,
// and those in calls of NewDesc.
func (s *source) addNames(f sourceFile, names map[string]bool) error {
	var failed error
	add := func(parts ...ast.Expr) {
		var texts []string
		for _, part := range parts {
			text, ok := s.evaluate(filepath.Dir(f.path), part)
			if !ok {
				failed = fmt.Errorf("%s: the name of a metric is not a string constant of a scanned package", f.path)
			}
			if text != "" {
				texts = append(texts, text)
			}
		}
		names[strings.Join(texts, "_")] = true
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if fields := optionFields(n); fields["Name"] != nil {
				add(slices.DeleteFunc([]ast.Expr{fields["Namespace"], fields["Subsystem"], fields["Name"]}, func(e ast.Expr) bool { return e == nil })...)
			}
		case *ast.CallExpr:
			if calledName(n) == "NewDesc" {
				if inner, ok := n.Args[0].(*ast.CallExpr); ok && calledName(inner) == "BuildFQName" {
					add(inner.Args...)
				} else {
					add(n.Args[0])
				}
			}
		}
		return true
	})
	return failed
}

// optionFields returns the fields of a literal of a type such as metrics.CounterOpts.
func optionFields(l *ast.CompositeLit) map[string]ast.Expr {
	t, ok := l.Type.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"CounterOpts", "GaugeOpts", "HistogramOpts", "SummaryOpts", "TimingHistogramOpts"}, t.Sel.Name) {
		return nil
	}
	fields := map[string]ast.Expr{}
	for _, e := range l.Elts {
		if field, ok := e.(*ast.KeyValueExpr); ok {
			fields[field.Key.(*ast.Ident).Name] = field.Value
		}
	}
	return fields
}
