package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLock checks that Lock waits until the lock is released or its context is done.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, path), open(t, path)
	failOnWait := func() { t.Error("lock that is free: got a call of onWait, want none") }
	if err := Lock(t.Context(), int(first.Fd()), time.Hour, failOnWait); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Lock(ctx, int(second.Fd()), time.Hour, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled call: got error %v, want %v", err, context.Canceled)
	}
	waits := 0
	err := Lock(t.Context(), int(second.Fd()), time.Millisecond, func() { waits++; first.Close() })
	if err != nil || waits != 1 {
		t.Errorf("got error %v and %d calls of onWait; want no error and 1 call", err, waits)
	}
}

// TestLock_Invalid checks that Lock returns the error of a descriptor that cannot be locked.
func TestLock_Invalid(t *testing.T) {
	if err := Lock(t.Context(), -1, time.Hour, nil); !errors.Is(err, unix.EBADF) {
		t.Errorf("got error %v, want %v", err, unix.EBADF)
	}
}

func open(t *testing.T, path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
