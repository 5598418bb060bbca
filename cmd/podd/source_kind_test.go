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

// kindAPIUsers contains the packages that may use manifest.KindAPI, and the use in each of them. All
// other packages must use the traits of a pod (manifest.Traits), so that a new kind of source with
// the same traits requires no change in these packages.
var kindAPIUsers = map[string]string{
	"manifest":                  "defines the kinds of sources and their traits",
	"manifest/decode":           "sets the traits, and the validation and annotations of a pod of an API server",
	"manifest/merge":            "defines the precedence of the kinds of sources",
	"cmd/podd/internal/offline": "lists the sources that the daemon would start",

	"cmd/podd/internal/cluster/boundpods": "implements the source of this kind",
}

// TestKindAPI checks that only the packages in kindAPIUsers use manifest.KindAPI.
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
				if kindAPIUsers[pkg] == "" {
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
	for pkg := range kindAPIUsers {
		if !used[pkg] {
			t.Errorf("package %s does not use KindAPI; remove it from kindAPIUsers", pkg)
		}
	}
}
