package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRemovals checks that podd removes directories only with package safepath, which does not cross
// mount points. os.RemoveAll and os.Root.RemoveAll would also remove the files of mounted file
// systems. The test recognizes these two by their single argument, because safepath.RemoveAll has
// two.
func TestRemovals(t *testing.T) {
	all := listPackages(t)
	i := slices.IndexFunc(all, func(p listedPackage) bool { return p.ImportPath == mainPackage })
	if i < 0 {
		t.Fatalf("go list did not list the package %s", mainPackage)
	}
	files := 0
	for _, path := range append(all[i].Deps, mainPackage) {
		dir, isOwn := strings.CutPrefix(path, "podd/")
		if !isOwn {
			continue
		}
		sources, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range sources {
			if !strings.HasSuffix(file, "_test.go") {
				files++
				checkRemovals(t, file)
			}
		}
	}
	if files < 100 {
		t.Errorf("checked %d files, want at least 100", files)
	}
}

// checkRemovals reports an error for each call in a file of a RemoveAll function with one argument.
func checkRemovals(t *testing.T, file string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "RemoveAll" {
			t.Errorf("%s: this RemoveAll crosses mount points; use safepath.RemoveAll", set.Position(call.Pos()))
		}
		return true
	})
}
