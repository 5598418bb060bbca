package tools

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestParseDebFile(t *testing.T) {
	for path, want := range map[string]debFile{
		"/x/containerd_1.6.20~ds1-1+deb12u3_amd64.deb":        {"containerd", "1.6.20"},
		"/x/runc_1.1.5+ds1-1+deb12u1_amd64.deb":               {"runc", "1.1.5"},
		"/x/busybox-static_1%3a1.35.0-4+deb12u1+b1_amd64.deb": {"busybox-static", "1.35.0"},
		"/x/without.deb": {"without.deb", ""},
	} {
		if got := parseDebFile(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestEntry_FilledOnce(t *testing.T) {
	c := &cache{dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	failure := errors.New("broken")
	calls := 0
	for _, result := range []error{failure, nil, nil} {
		dir, err := c.ensureEntry("x", func(dir string) error {
			calls++
			if err := os.WriteFile(filepath.Join(dir, "part"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return result
		})
		if !errors.Is(err, result) {
			t.Fatalf("ensureEntry: got error %v, want %v", err, result)
		}
		if result == nil {
			if _, err := os.Stat(filepath.Join(dir, "part")); err != nil {
				t.Error(err)
			}
		}
	}
	if left, err := os.ReadDir(c.dir); err != nil || len(left) != 1 || calls != 2 {
		t.Errorf("got %d calls of the fill function and cache entries %v, %v; want 2 calls and one entry", calls, left, err)
	}
}

// TestModuleHash checks that a change of the module or of a submodule changes the hash.
func TestModuleHash(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"go.mod", "go.sum", "sub/go.mod", "sub/go.sum"}
	for _, name := range names {
		write(name, "module x\n")
	}
	earlier := map[string]string{} // changed file by hash
	for _, name := range append([]string{""}, names...) {
		if name != "" {
			write(name, "module y\n")
		}
		hash, err := moduleHash(t.Context(), dir, "sub")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := earlier[hash]; ok {
			t.Errorf("hash after a change of %q: got the same hash %s as after a change of %q, want another", name, hash, other)
		}
		earlier[hash] = name
	}
}

func TestArchive_DuplicateName(t *testing.T) {
	content, err := archive([]file{{name: "etc/passwd", data: []byte("old")}, {name: "bin/x", mode: 0o755}, {name: "etc/passwd", data: []byte("new")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+" "+string(data))
	}
	if want := []string{"bin/x ", "etc/passwd new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNewImage_Reproducible(t *testing.T) {
	files := []file{{name: "bin/", mode: 0o755}, {name: "bin/x", mode: 0o755, data: []byte("x")}, {name: "bin/y", mode: 0o777, link: "x"}}
	var digests [2]v1.Hash
	for i := range digests {
		image, err := newImage(files, v1.Config{Cmd: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if digests[i], err = image.Digest(); err != nil {
			t.Fatal(err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("two images of the same files: got the digests %s and %s; want equal digests", digests[0], digests[1])
	}
}
