package node

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestSupportsNoSwap checks that supportsNoSwap returns true exactly if a tmpfs can be mounted with
// the option noswap.
func TestSupportsNoSwap(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "noswap")
	if err == nil {
		defer func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}()
	}
	if got, want := supportsNoSwap(), err == nil; got != want {
		t.Errorf("got %v, want %v (error of the mount: %v)", got, want, err)
	}
}
