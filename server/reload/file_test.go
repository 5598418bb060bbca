package reload

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parse(text []byte) (string, error) {
	if bytes.HasPrefix(text, []byte("bad")) {
		return "", errors.New("not good")
	}
	return string(text), nil
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if _, err := Open(log, Single(parse), path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("of a missing file: %v", err)
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
	f, err := Open(log, Single(parse), path)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want, says string) {
		t.Helper()
		for range 2 {
			if got := f.Get(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if got := said.String(); strings.Count(got, "level=") != strings.Count(says, "|")+min(len(says), 1) {
			t.Errorf("it said %q, want %q", got, says)
		}
		said.Reset()
	}
	is("one", "")
	write("two!")
	is("two!", "read anew")
	write("bad")
	is("two!", "counts on")
	os.Remove(path)
	is("two!", "counts on")
	write("three")
	is("three", "read anew")
	write(strings.Repeat("x", maxSize+1))
	is("three", "counts on")
}

func TestFileOfADirectory(t *testing.T) {
	if _, err := Open(slog.Default(), Single(parse), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}

// TestFiles: those that belong together are read again when either is written,
// whichever comes first.
func TestFiles(t *testing.T) {
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
			return "", errors.New("no pair")
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
			t.Errorf("half a pair became %q", got)
		}
		write(a, want)
		write(b, want)
		if got := f.Get(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
