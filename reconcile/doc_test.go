package reconcile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxTerms is the maximum number of entries in the glossary. More terms of podd's own would make its
// code hard to read for engineers who know Kubernetes.
const maxTerms = 15

// TestGlossary checks the number of entries in the glossary, and that each name of a Go declaration
// in it exists.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n// # Glossary\n")
	if !ok {
		t.Fatal("doc.go has no section Glossary")
	}
	glossary, _, _ := strings.Cut(rest, "\n// # ")
	if n := strings.Count(glossary, "\n//   - "); n == 0 || n > maxTerms {
		t.Errorf("got %d entries, want 1 to %d", n, maxTerms)
	}
	for _, m := range regexp.MustCompile(`\b(plan|state|admission)\.([A-Z]\w+)`).FindAllStringSubmatch(glossary, -1) {
		if !declaresType(t, m[1], m[2]) {
			t.Errorf("%s.%s does not exist", m[1], m[2])
		}
	}
}

// declaresType reports whether a file of the package in the directory dir declares a type.
func declaresType(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\ntype "+name+" ")
	})
}
