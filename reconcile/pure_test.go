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

// The reasons why a pure function must not use a package or function.
const (
	timeIsArgument = "the time is an argument"
	neverWaits     = "pure functions never wait"
	deterministic  = "equal arguments must have equal results"
	noIO           = "pure functions perform no I/O"
	noLogs         = "pure functions return log records instead of writing them"
	noSharedState  = "pure functions share no mutable state"
	noGoroutines   = "pure functions start no goroutine"
)

// impure contains for each function, or for each package name with a dot, the reason why a pure
// function does not use it.
var impure = map[string]string{
	"time.Now": timeIsArgument, "time.Since": timeIsArgument, "time.Until": timeIsArgument,
	"time.Sleep": neverWaits, "time.After": neverWaits, "time.NewTimer": neverWaits, "time.AfterFunc": neverWaits, "time.Tick": neverWaits,
	"rand.": deterministic, "os.": noIO, "exec.": noIO, "context.": neverWaits, "clock.": timeIsArgument,
	"log.": noLogs, "slog.": noLogs, "sync.": noSharedState, "atomic.": noSharedState,
}

// TestPure checks that pure packages read no clock, perform no I/O, start no goroutine and use no
// random numbers.
func TestPure(t *testing.T) {
	for _, dir := range []string{"plan", "admission", "state", "result", "status", "render", "event", "gc", "device/allocation", "eviction/pressure", "volume/selinux"} {
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

// impurity returns the function or statement in n that is not allowed in a pure function, and the
// reason; "" if n is allowed.
func impurity(n ast.Node) (what, why string) {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go", noGoroutines
	case *ast.SelectStmt, *ast.SendStmt:
		return "a channel", neverWaits
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
