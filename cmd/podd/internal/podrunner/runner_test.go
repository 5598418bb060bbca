package podrunner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// TestRunner_RemoveDir checks that RemoveDir returns an error while another file system is mounted in the
// directory of a run, and removes no file of that file system. After the unmount it must remove the
// directory, and a second call must do nothing.
func TestRunner_RemoveDir(t *testing.T) {
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	r := &Runner{dir: filepath.Join(t.TempDir(), "run")}
	at := filepath.Join(r.dir, "pods", "uid", "mnt")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.MkdirAll(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	if err := r.RemoveDir(t.Context()); !errors.Is(err, safepath.ErrMount) {
		t.Errorf("with a mount: got error %v, want %v", err, safepath.ErrMount)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("file in the mounted file system: got error %v, want the file to exist", err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.RemoveDir(t.Context()); err != nil {
			t.Errorf("after the unmount: got error %v, want none", err)
		}
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the run after RemoveDir: got error %v, want %v", err, os.ErrNotExist)
	}
}
