package memory

import (
	"runtime"
	"testing"
)

// TestChooseGCPercent checks the percentage for heaps up to largeHeapSize and above, and that the size of
// the live heap can be read.
func TestChooseGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: busyGCPercent, largeHeapSize: busyGCPercent, largeHeapSize + 1: largeHeapGCPercent} {
		if got := chooseGCPercent(live); got != want {
			t.Errorf("live heap of %d bytes: got %d percent, want %d", live, got, want)
		}
	}
	if liveHeap() == 0 {
		runtime.GC()
		if liveHeap() == 0 {
			t.Error("liveHeap after a garbage collection: got 0, want the size of the heap")
		}
	}
}
