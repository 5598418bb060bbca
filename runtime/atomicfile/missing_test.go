package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMissing checks that exactly the directories that get a new entry are returned.
func TestMissing(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	in := func(name string) string { return filepath.Join(top, name) }
	if err := os.WriteFile(in("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string][]string{
		top: nil, ".": nil, "/": nil,
		in("a"):     {top},
		in("a/b/c"): {in("a/b"), in("a"), top},
		"a/b":       {"a", "."},
	} {
		if got, err := missingIn(dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", dir, got, err, want)
		}
	}
	if got, err := missingIn(in("file/a")); err == nil {
		t.Errorf("below a file: got %q", got)
	}
	if err := createDir(in("a/b/c")); err != nil {
		t.Error(err)
	}
	if got, err := missingIn(in("a/b/c")); err != nil || len(got) > 0 {
		t.Errorf("after its creation: got %q, %v", got, err)
	}
}
