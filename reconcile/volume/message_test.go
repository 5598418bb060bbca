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
	if _, err := d.Message("u1", "app", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	path, err := d.MakeMessage("u1", "app", 26)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(d.Root, "u1/containers/app/0000001a"); path != want {
		t.Errorf("it is %s, want %s", path, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o666 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"no disk\n", "no disk\n"}, {strings.Repeat("a", 5000) + "b", strings.Repeat("a", 4095) + "b"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Message("u1", "app", 26); err != nil || got != c.want {
			t.Errorf("%d bytes: got %d, %v", len(c.text), len(got), err)
		}
	}
	// A file of any size is read at its end.
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Message("u1", "app", 26); err != nil || len(got) != 4096 {
		t.Errorf("a huge one: %d, %v", len(got), err)
	}
	if _, err := d.MakeMessage("u1", "app", 26); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Message("u1", "app", 26); err != nil || got != "" {
		t.Errorf("of a start that is made again: %q, %v", got, err)
	}
}

// TestMessagesAreFew checks that at most two files exist for a container that restarts.
func TestMessagesAreFew(t *testing.T) {
	d := Dir{Root: t.TempDir()}
	for attempt := range uint32(20) {
		if _, err := d.MakeMessage("u1", "app", attempt); err != nil {
			t.Fatal(err)
		}
	}
	names, err := os.ReadDir(filepath.Join(d.Root, "u1/containers/app"))
	if err != nil || len(names) != 2 || names[0].Name() != "00000012" {
		t.Errorf("there are %v, %v", names, err)
	}
}

// TestMessageRefuses checks that a file of another type in place of a message is not read.
func TestMessageRefuses(t *testing.T) {
	d := Dir{Root: t.TempDir()}
	path, err := d.MakeMessage("u1", "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	plant := func(what string, make func() error) {
		os.RemoveAll(path)
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Message("u1", "app", 0); err == nil || got != "" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	plant("a link", func() error { return os.Symlink(secret, path) })
	plant("a directory", func() error { return os.Mkdir(path, 0o755) })
	dir := filepath.Dir(path)
	plant("a link above it", func() error {
		os.RemoveAll(dir)
		return os.Symlink(filepath.Dir(secret), dir)
	})
	for _, bad := range []string{"..", "../u2", ""} {
		if _, err := d.Message("u1", bad, 0); err == nil {
			t.Errorf("a container named %q", bad)
		}
	}
}
