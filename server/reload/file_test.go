package reload

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func parse(text []byte) (string, error) {
	if bytes.HasPrefix(text, []byte("bad")) {
		return "", errors.New("invalid content")
	}
	return string(text), nil
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	if _, err := Open(log, ParseSingleFile(parse), path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of a missing file: got error %v, want one with its path", err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	f, err := Open(log, ParseSingleFile(parse), path)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want, wantLog string) {
		t.Helper()
		for range 2 {
			if got := f.Get(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if got := logged.String(); strings.Count(got, "level=") != strings.Count(wantLog, "|")+min(len(wantLog), 1) {
			t.Errorf("got log %q, want %q", got, wantLog)
		}
		logged.Reset()
	}
	is("one", "")
	write("two!")
	is("two!", "reloaded")
	write("bad")
	is("two!", "previous content")
	os.Remove(path)
	is("two!", "previous content")
	write("three")
	is("three", "reloaded")
	write(strings.Repeat("x", maxSize+1))
	is("three", "previous content")
}

// TestFile_SameModTime checks that a write is noticed even if it keeps the inode, the size and the
// modification time of the file, as "cp -p" and "rsync --inplace -t" can do.
func TestFile_SameModTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	modTime := time.Unix(1e9, 0)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modTime, modTime); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	f, err := Open(slog.New(slog.DiscardHandler), ParseSingleFile(parse), path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // longer than the granularity of ctime
	write("two")
	if got := f.Get(); got != "two" {
		t.Errorf("got %q, want %q", got, "two")
	}
}

func TestOpen_Directory(t *testing.T) {
	if _, err := Open(slog.Default(), ParseSingleFile(parse), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open of a directory: got error %v, want \"not a regular file\" in it", err)
	}
}

// TestFile_SeveralFiles checks that a File of two files that belong together reads both again after
// either of them was written. The order of the writes must not matter.
func TestFile_SeveralFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(a, "1")
	write(b, "1")
	f, err := Open(slog.New(slog.DiscardHandler), func(files [][]byte) (string, error) {
		if !bytes.Equal(files[0], files[1]) {
			return "", errors.New("files differ")
		}
		return string(files[0]), nil
	}, a, b)
	if err != nil || f.Get() != "1" {
		t.Fatal(err)
	}
	for i, first := range []string{a, b} {
		want := strings.Repeat("2", i+2)
		write(first, want)
		if got := f.Get(); got == want {
			t.Errorf("after a write of one of the two files: got %q, want the previous value until both are written", got)
		}
		write(a, want)
		write(b, want)
		if got := f.Get(); got != want {
			t.Errorf("after writes of both files: got %q, want %q", got, want)
		}
	}
}
