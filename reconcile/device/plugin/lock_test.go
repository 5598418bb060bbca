package plugin

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestLockDir checks that LockDir waits until the lock is released or its context is done.
func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "device-plugins")
	release, err := LockDir(t.Context(), dir, func() { t.Error("waited for a lock that no process has") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LockDir(ctx, dir, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v, want %v", err, context.Canceled)
	}
	waits := 0
	again, err := LockDir(t.Context(), dir, func() { waits++; release() })
	if err != nil || waits != 1 {
		t.Fatalf("got error %v, %d calls of onWait, want nil and 1", err, waits)
	}
	again()
}
