package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metricDirs are the directories of the kubelet's source in the module k8s.io/kubernetes.
var metricDirs = []string{"cmd/kubelet", "pkg/kubelet", "pkg/volume", "pkg/credentialprovider"}

// runtimeMetricsFile declares metrics whose names the container runtime chooses.
const runtimeMetricsFile = "cri_metrics.go"

// metricNames returns the names of all metrics that the source of the kubelet declares, one a line. It reads
// the source because a kubelet serves a metric with labels only after its first event.
func metricNames() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", err
	}
	s := source{packages: map[string]*constants{}, all: constants{}}
	for _, dir := range metricDirs {
		if err := filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), dir), s.addFile); err != nil {
			return "", err
		}
	}
	names := map[string]bool{}
	for _, f := range s.files {
		if err := s.addNames(f, names); err != nil {
			return "", err
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n", nil
}

// constants contains the values of string constants by name.
type constants map[string]string

// A source is a set of parsed files.
type source struct {
	files    []sourceFile
	packages map[string]*constants // by directory
	all      constants             // the constants of all packages; a name with several values has the last one
}

type sourceFile struct {
	path string
	*ast.File
}

// addFile adds a file of Go code unless it is a test or runtimeMetricsFile. It is an fs.WalkDirFunc.
func (s *source) addFile(path string, d fs.DirEntry, err error) error {
	if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || d.Name() == runtimeMetricsFile {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.files = append(s.files, sourceFile{path, f})
	dir := filepath.Dir(path)
	if s.packages[dir] == nil {
		s.packages[dir] = &constants{}
	}
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, value := range values.Values {
				if text, ok := s.evaluate(dir, value); ok {
					(*s.packages[dir])[values.Names[i].Name], s.all[values.Names[i].Name] = text, text
				}
			}
		}
	}
	return nil
}

// evaluate returns the value of a string expression in a package.
func (s *source) evaluate(dir string, e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok = (*s.packages[dir])[e.Name]
	case *ast.SelectorExpr:
		text, ok = s.all[e.Sel.Name]
	}
	return text, ok
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

// calledName returns the name of the function of a package that c calls, or "".
func calledName(c *ast.CallExpr) string {
	if f, ok := c.Fun.(*ast.SelectorExpr); ok {
		return f.Sel.Name
	}
	return ""
}
