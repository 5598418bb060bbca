package reconcile_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// impure are the packages that a pure function does not use.
var impure = map[string]string{
	"time.Now": "time comes in as an argument", "time.Since": "time comes in as an argument", "time.Until": "time comes in as an argument",
	"time.Sleep": "nothing waits", "time.After": "nothing waits", "time.NewTimer": "nothing waits", "time.AfterFunc": "nothing waits", "time.Tick": "nothing waits",
	"rand.": "equal inputs give equal results", "os.": "nothing looks at the machine", "exec.": "nothing looks at the machine",
	"log.": "whoever decides does not talk", "slog.": "whoever decides does not talk", "sync.": "nothing is shared that changes", "atomic.": "nothing is shared that changes",
}

// TestPure checks that the packages that decide use no clock, no input or output, no
// goroutine and no randomness.
func TestPure(t *testing.T) {
	for _, dir := range []string{"plan", "admission", "state", "status", "render", "event", "device/allocation"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("Go files in %s: got %d (error %v), want at least one", dir, len(files), err)
		}
		for _, name := range slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") }) {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if what, why := impurity(n); why != "" {
					t.Errorf("%s: %s: %s", set.Position(n.Pos()), what, why)
				}
				return true
			})
		}
	}
}

func impurity(n ast.Node) (what, why string) {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go", "a goroutine outlives the answer"
	case *ast.SelectStmt, *ast.SendStmt:
		return "a channel", "nothing waits"
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Obj == nil {
			what = pkg.Name + "." + n.Sel.Name
			for _, key := range []string{what, pkg.Name + "."} {
				if why := impure[key]; why != "" {
					return what, why
				}
			}
		}
	}
	return "", ""
}
