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

// usesKindAPI has the packages that may use manifest.KindAPI, with the reason. All other packages
// decide by the traits of a pod (manifest.Traits), so that another kind of source with the same
// traits needs no change there.
var usesKindAPI = map[string]string{
	"manifest":                  "defines the kinds of sources and their traits",
	"manifest/decode":           "sets the traits, and the validation and annotations of a pod of an API server",
	"manifest/merge":            "ranks the kinds of sources",
	"cmd/podd/internal/cluster": "is the source of this kind",
	"cmd/podd/internal/offline": "lists the sources of the daemon without starting them",
}

// TestKindAPI checks that no other package decides by the kind of a pod's source.
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
			t.Errorf("usesKindAPI has %s, which does not use KindAPI; remove it from the list", pkg)
		}
	}
}
