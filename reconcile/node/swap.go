package node

import (
	"time"

	"golang.org/x/sys/unix"

	"podd/reconcile/event"
)

// SwapEvents returns an event if the host has swap, and the kernel may write the files of
// memory-backed volumes to the swap.
func SwapEvents(at time.Time) []event.Event {
	if swap, err := ReadMemInfo("SwapTotal"); err != nil || swap == 0 || supportsNoSwap() {
		return nil
	}
	return []event.Event{event.ForSwappedVolumes(at)}
}

// supportsNoSwap reports whether a tmpfs can be mounted with the option noswap, which exists since
// Linux 6.4. The kernel rejects the option in a user namespace. supportsNoSwap mounts nothing.
func supportsNoSwap() bool {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fs)
	return unix.FsconfigSetFlag(fs, "noswap") == nil
}
