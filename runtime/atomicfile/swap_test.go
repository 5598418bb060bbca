package atomicfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"podd/runtime/atomicfile"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestSwapIn checks that each call replaces the whole content, and that all calls after the second
// use the same two inodes.
func TestSwapIn(t *testing.T) {
	root := openRoot(t, t.TempDir())
	inodes := map[uint64]bool{}
	for i, size := range []int{100, 5000, 10, 1, 9000} {
		want := fmt.Sprintf("%0*d", size, i)
		if err := atomicfile.SwapIn(root, "file", "spare", []byte(want), i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if got, err := root.ReadFile("file"); err != nil || string(got) != want {
			t.Errorf("call %d: got %d bytes, error %v; want %d bytes", i, len(got), err, len(want))
		}
		info, err := root.Lstat("file")
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("call %d: got mode %v, want -rw-------", i, info.Mode())
		}
		inodes[info.Sys().(*syscall.Stat_t).Ino] = true
	}
	if len(inodes) != 2 {
		t.Errorf("inodes of the file after five calls of SwapIn: got %d, want 2", len(inodes))
	}
}

// TestSwapIn_ForeignSpare checks SwapIn if one of its two names is a file that SwapIn has not created: a
// symbolic or hard link, a public file or a FIFO. SwapIn must replace this file, and must not write
// through the link.
func TestSwapIn_ForeignSpare(t *testing.T) {
	for _, name := range []string{"file", "spare"} {
		for kind, create := range map[string]func(path, other string) error{
			"a symbolic link": func(path, other string) error { return os.Symlink(other, path) },
			"a hard link":     func(path, other string) error { return os.Link(other, path) },
			"a public file":   func(path, _ string) error { return os.WriteFile(path, nil, 0o644) },
			"a FIFO":          func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		} {
			dir := t.TempDir()
			other := filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := create(filepath.Join(dir, name), other); err != nil {
				t.Fatal(err)
			}
			root := openRoot(t, dir)
			for _, want := range []string{"one", "two", "three"} {
				if err := atomicfile.SwapIn(root, "file", "spare", []byte(want), false); err != nil {
					t.Fatalf("%s is %s: got error %v, want none", name, kind, err)
				}
				if got, err := root.ReadFile("file"); err != nil || string(got) != want {
					t.Errorf("%s is %s: got %q, error %v; want %q", name, kind, got, err, want)
				}
			}
			if got, err := os.ReadFile(other); err != nil || string(got) != "other" {
				t.Errorf("%s is %s: target of the link: got %q, error %v; want %q", name, kind, got, err, "other")
			}
		}
	}
}
