package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMissingParents checks that missingParents returns exactly the directories that get a new entry
// when a directory and its missing parents are created.
func TestMissingParents(t *testing.T) {
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
		if got, err := missingParents(dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, error %v; want %q", dir, got, err, want)
		}
	}
	if got, err := missingParents(in("file/a")); err == nil {
		t.Errorf("directory below a file: got %q, want an error", got)
	}
	if err := createDir(in("a/b/c")); err != nil {
		t.Error(err)
	}
	if got, err := missingParents(in("a/b/c")); err != nil || len(got) > 0 {
		t.Errorf("existing directory: got %q, error %v; want none", got, err)
	}
}
