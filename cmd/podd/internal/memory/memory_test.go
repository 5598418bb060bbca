package memory

import (
	"runtime"
	"testing"
)

func TestBusyPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: busyGCPercent, largeHeapSize: busyGCPercent, largeHeapSize + 1: largeHeapGCPercent} {
		if got := chooseGCPercent(live); got != want {
			t.Errorf("busyPercent(%d) = %d, want %d", live, got, want)
		}
	}
	if liveHeap() == 0 {
		runtime.GC()
		if liveHeap() == 0 {
			t.Error("liveHeap() = 0 after a garbage collection")
		}
	}
}
