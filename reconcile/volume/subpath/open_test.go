package subpath

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpen_Links checks that Open follows and creates paths within the volume only.
func TestOpen_Links(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(volume, "v1", "in"), 0o755))
	for name, target := range map[string]string{
		"now": "v1", "host": filepath.Join(volume, "v1"), "v1/up": "..",
		"out": outside, "climb": "../" + filepath.Base(outside), "v1/far": "../../../../etc", "etc": "/etc", "dangling": "v2",
	} {
		must(t, os.Symlink(target, filepath.Join(volume, name)))
	}
	for path, want := range map[string]bool{
		"now/in": true, "host/in": true, "v1/up/now": true, "now/new": true, "host/new2/a": true,
		"out": false, "out/new": false, "climb": false, "v1/far": false, "etc/passwd": false, "dangling": false, "dangling/a": false,
	} {
		f, err := Open(volume, path, true)
		if got := err == nil; got != want {
			t.Errorf("opening %s: got error %v, want success: %t", path, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
	if created, err := os.ReadDir(outside); err != nil || len(created) > 0 {
		t.Errorf("files outside of the volume: got %v (error %v), want none", created, err)
	}
	if _, err := os.Stat(filepath.Join(volume, "v1", "new2", "a")); err != nil {
		t.Errorf("path that is created through a link in the volume: got error %v, want none", err)
	}
}

// TestOpen_SwappedLinks checks that a container that concurrently replaces a directory with
// a link never makes Open return a file outside of the volume (CVE-2017-1002101,
// CVE-2021-25741).
func TestOpen_SwappedLinks(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(volume, "dir", "in"), 0o755))
	must(t, os.MkdirAll(filepath.Join(outside, "in"), 0o755))
	must(t, os.Symlink(outside, filepath.Join(volume, "link")))
	var done atomic.Bool
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		for !done.Load() {
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(volume, "dir"), unix.AT_FDCWD, filepath.Join(volume, "link"), unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { done.Store(true); <-swapped }()
	secret, err := os.Stat(filepath.Join(outside, "in"))
	must(t, err)
	opened := 0
	for range 2000 {
		for _, path := range []string{"dir/in", "dir/new/a"} {
			f, err := Open(volume, path, true)
			if err != nil {
				continue
			}
			opened++
			info, err := f.Stat()
			f.Close()
			if err != nil || os.SameFile(secret, info) {
				t.Fatalf("Open(%s): got the file outside of the volume (error of Stat: %v), want another file or an error", path, err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
		t.Error("directory outside of the volume: got one that Open created, want none")
	}
	if opened == 0 {
		t.Error("got no successful call of Open, want at least one")
	}
}
