package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"podd/runtime/atomicfile"
)

// TestWrite checks that a file is complete at any moment, that the file and its directories
// are private, and that no temporary file remains.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	long, short := strings.Repeat("long ", 10000), "short"
	var writers sync.WaitGroup
	for _, text := range []string{long, short} {
		writers.Go(func() {
			for range 50 {
				if err := atomicfile.Write(path, []byte(text)); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != long && string(got) != short {
					t.Errorf("reading the file while two writers replace it: got %d bytes, error %v; want the %d or %d bytes of one writer", len(got), err, len(long), len(short))
				}
			}
		})
	}
	writers.Wait()
	wantOnlyFile(t, path)
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode() != want {
			t.Errorf("%s: got mode %v, error %v; want mode %v", p, info.Mode(), err, want)
		}
	}
}

// TestWrite_LinksReplaced checks that symbolic links at the path of the file and of the
// temporary file are replaced and not followed.
func TestWrite_LinksReplaced(t *testing.T) {
	for name, write := range map[string]func(*os.Root, string, string, []byte) error{
		"WriteIn": atomicfile.WriteIn, "WriteInNoDirSync": atomicfile.WriteInNoDirSync,
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
			t.Errorf("%s: got error %v, want none", name, err)
		}
		wantOnlyFile(t, path)
		if _, err := os.Lstat(other); err == nil {
			t.Errorf("%s: got a file at the target of a link, want none", name)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "x" {
			t.Errorf("%s: got content %q, error %v; want %q", name, got, err, "x")
		}
		root.Close()
	}
}

// TestWrite_Failed checks that Write returns an error if it cannot replace the file, and that it then
// leaves no temporary file.
func TestWrite_Failed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("x")); err == nil {
		t.Error("Write to the path of a directory: got no error, want one")
	}
	wantOnlyFile(t, path)
	if err := atomicfile.Write(filepath.Join(path, "file"), []byte("x")); err != nil {
		t.Error(err)
	}
	if err := atomicfile.Write(filepath.Join(path, "file", "under"), []byte("x")); err == nil {
		t.Error("Write to a path below a file: got no error, want one")
	}
	wantOnlyFile(t, filepath.Join(path, "file"))
}

// wantOnlyFile fails the test unless path is the only file in its directory.
func wantOnlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{filepath.Base(path)}) {
		t.Errorf("files in %s: got %v, error %v; want only %s", filepath.Dir(path), names, err, filepath.Base(path))
	}
}

// TestRead checks that Read reads only regular files of a limited size, follows no link and
// does not block.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "full": "12345678", "large": "123456789"} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(path("full"), path("link")), os.Mkdir(path("dir"), 0o700), syscall.Mkfifo(path("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"empty": "", "full": "12345678"} {
		if got, err := atomicfile.Read(path(name), 8); err != nil || string(got) != want {
			t.Errorf("%s: got content %q, error %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"large": "more than 8 bytes", "link": "too many levels of symbolic links", "dir": "not a regular file",
		"fifo": "not a regular file", "none": "no such file",
	} {
		_, err := atomicfile.Read(path(name), 8)
		if _, is := errors.AsType[*fs.PathError](err); !is || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, want)
		}
	}
}
