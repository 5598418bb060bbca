package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockDir checks that LockDir waits until the lock is released or its context is done.
func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "device-plugins")
	release, err := LockDir(t.Context(), dir, func() { t.Error("lock that no process has: got a call of onWait, want none") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LockDir(ctx, dir, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled call: got error %v, want %v", err, context.Canceled)
	}
	waits := 0
	again, err := LockDir(t.Context(), dir, func() { waits++; release() })
	if err != nil || waits != 1 {
		t.Fatalf("got error %v, %d calls of onWait; want no error and 1 call", err, waits)
	}
	again()
}

// TestLockDir_LockedByPlugin checks that a plugin with access to the directory of the sockets cannot
// prevent podd from locking it.
func TestLockDir_LockedByPlugin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "device-plugins")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	release, err := LockDir(ctx, dir, cancel)
	if err != nil {
		t.Fatalf("LockDir: got error %v, want none", err)
	}
	release()
	info, err := os.Lstat(dir + ".lock")
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("lock file: got %v (error %v), want a regular file with mode 0600", info, err)
	}
}

// TestLockDir_Invalid checks that LockDir does not open a file through a symbolic link, and does not
// lock a file that is not a regular file.
func TestLockDir_Invalid(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink("target", path) },
		"FIFO":          func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "device-plugins")
			if err := create(dir + ".lock"); err != nil {
				t.Fatal(err)
			}
			if release, err := LockDir(t.Context(), dir, func() {}); err == nil {
				release()
				t.Error("got nil, want an error")
			}
			if _, err := os.Lstat(filepath.Join(root, "target")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("target of the link: got error %v, want %v", err, os.ErrNotExist)
			}
		})
	}
}
