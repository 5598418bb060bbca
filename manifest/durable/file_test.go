package durable_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"podd/manifest/durable"
)

// TestWrite: a file is whole at any moment, private, in a directory that need not be
// there, and nothing is left beside it.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	long, short := strings.Repeat("long ", 10000), "short"
	var writers sync.WaitGroup
	for _, text := range []string{long, short} {
		writers.Go(func() {
			for range 50 {
				if err := durable.Write(path, []byte(text)); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != long && string(got) != short {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	writers.Wait()
	alone(t, path)
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode() != want {
			t.Errorf("%s is %v, %v", p, info.Mode(), err)
		}
	}
}

// TestReplaced: links are replaced and not followed, also what was left unfinished.
func TestReplaced(t *testing.T) {
	for name, write := range map[string]func(*os.Root, string, string, []byte) error{
		"WriteIn": durable.WriteIn, "Put": durable.Put, "Replace": durable.Replace,
	} {
		dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
		path := filepath.Join(dir, "file")
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range []string{path, path + ".new"} {
			if err := os.Symlink(other, link); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(root, "file", "file.new", []byte("x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		alone(t, path)
		if _, err := os.Lstat(other); err == nil {
			t.Errorf("%s wrote where a link leads", name)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "x" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		root.Close()
	}
}

// TestFailed: what was there stays, and nothing unfinished is left.
func TestFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Write(path, []byte("x")); err == nil {
		t.Error("wrote over a directory")
	}
	alone(t, path)
	if err := durable.Write(filepath.Join(path, "file"), []byte("x")); err != nil {
		t.Error(err)
	}
	if err := durable.Write(filepath.Join(path, "file", "under"), []byte("x")); err == nil {
		t.Error("wrote below a file")
	}
	alone(t, filepath.Join(path, "file"))
}

// alone fails the test unless a directory has this file and nothing else.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{filepath.Base(path)}) {
		t.Errorf("there is %v, %v", names, err)
	}
}
