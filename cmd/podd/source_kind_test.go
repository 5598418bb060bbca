package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// usesKindAPI contains the packages that may use manifest.KindAPI, and what each of them does with
// it. All other packages must use the traits of a pod (manifest.Traits), so that a new kind of
// source with the same traits requires no change in them.
var usesKindAPI = map[string]string{
	"manifest":                  "defines the kinds of sources and their traits",
	"manifest/decode":           "sets the traits, and the validation and annotations of a pod of an API server",
	"manifest/merge":            "defines the precedence of the kinds of sources",
	"cmd/podd/internal/cluster": "implements the source of this kind",
	"cmd/podd/internal/offline": "lists the sources of the daemon without starting them",
}

// TestKindAPI checks that only the packages in usesKindAPI use manifest.KindAPI.
func TestKindAPI(t *testing.T) {
	used := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "KindAPI" {
				used[pkg] = true
				if usesKindAPI[pkg] == "" {
					t.Errorf("%s: uses KindAPI; add a trait to manifest.Traits instead", set.Position(id.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range usesKindAPI {
		if !used[pkg] {
			t.Errorf("package %s does not use KindAPI; remove it from usesKindAPI", pkg)
		}
	}
}
