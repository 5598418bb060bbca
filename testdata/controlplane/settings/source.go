package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// kubeletDirs are the directories of the kubelet's source in the module k8s.io/kubernetes.
var kubeletDirs = []string{"cmd/kubelet", "pkg/kubelet", "pkg/volume", "pkg/credentialprovider"}

// runtimeMetricsFile declares metrics whose names the container runtime chooses.
const runtimeMetricsFile = "cri_metrics.go"

// readSource parses the source of the kubelet.
func readSource() (*source, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return nil, err
	}
	s := &source{packages: map[string]*constants{}, all: constants{}}
	for _, dir := range kubeletDirs {
		if err := filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), dir), s.addFile); err != nil {
			return nil, err
		}
	}
	return s, nil
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

// calledName returns the name of the function or method that c calls, or "".
func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
