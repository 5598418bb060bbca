package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMessage(t *testing.T) {
	d := Dir{Root: filepath.Join(t.TempDir(), "pods")}
	if _, err := d.ReadMessage("u1", "app", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Message without a directory: got error %v, want %v", err, fs.ErrNotExist)
	}
	path, err := d.CreateMessageFile("u1", "app", 26)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(d.Root, "u1/containers/app/0000001a"); path != want {
		t.Errorf("MakeMessage: got path %s, want %s", path, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o666 {
		t.Errorf("mode of the file: got %v, error %v; want 666", info.Mode(), err)
	}
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"no disk\n", "no disk\n"}, {strings.Repeat("a", 5000) + "b", strings.Repeat("a", 4095) + "b"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadMessage("u1", "app", 26); err != nil || got != c.want {
			t.Errorf("Message of %d bytes: got %d bytes, error %v; want %d bytes", len(c.text), len(got), err, len(c.want))
		}
	}
	// Only the end of a large file is read.
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadMessage("u1", "app", 26); err != nil || len(got) != 4096 {
		t.Errorf("Message of 1 TiB: got %d bytes, error %v; want 4096 bytes", len(got), err)
	}
	if _, err := d.CreateMessageFile("u1", "app", 26); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadMessage("u1", "app", 26); err != nil || got != "" {
		t.Errorf("Message after a second MakeMessage for the same attempt: got %q, error %v; want \"\"", got, err)
	}
}

// TestMakeMessage_RemovesOld checks that at most two files exist for a container that restarts.
func TestMakeMessage_RemovesOld(t *testing.T) {
	d := Dir{Root: t.TempDir()}
	for attempt := range uint32(20) {
		if _, err := d.CreateMessageFile("u1", "app", attempt); err != nil {
			t.Fatal(err)
		}
	}
	names, err := os.ReadDir(filepath.Join(d.Root, "u1/containers/app"))
	if err != nil || len(names) != 2 || names[0].Name() != "00000012" {
		t.Errorf("files after 20 attempts: got %v, error %v; want 00000012 and 00000013", names, err)
	}
}

// TestMessage_NotRegular checks that ReadMessage does not read a link or a directory in place of
// the file.
func TestMessage_NotRegular(t *testing.T) {
	d := Dir{Root: t.TempDir()}
	path, err := d.CreateMessageFile("u1", "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(name string, create func() error) {
		os.RemoveAll(path)
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadMessage("u1", "app", 0); err == nil || got != "" {
			t.Errorf("%s: got %q, error %v; want an error", name, got, err)
		}
	}
	check("link", func() error { return os.Symlink(secret, path) })
	check("directory", func() error { return os.Mkdir(path, 0o755) })
	dir := filepath.Dir(path)
	check("link in place of the parent directory", func() error {
		os.RemoveAll(dir)
		return os.Symlink(filepath.Dir(secret), dir)
	})
	for _, bad := range []string{"..", "../u2", ""} {
		if _, err := d.ReadMessage("u1", bad, 0); err == nil {
			t.Errorf("Message of container %q: got no error, want one", bad)
		}
	}
}
