// Package mountns lets a test mount file systems that no other process can see.
package mountns

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Enter moves the calling goroutine to a new mount namespace in which all mounts are private. The
// goroutine stays on its thread until it ends. Then the thread is destroyed, and with it the namespace
// and its mounts. Enter returns an error if the process may not create mount namespaces.
func Enter() error {
	runtime.LockOSThread() // not unlocked, so that no other goroutine runs in the namespace
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}
