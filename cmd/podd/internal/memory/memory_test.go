package memory

import (
	"runtime"
	"sync"
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

// TestFreeMemory_Stacks checks that freeMemory frees the stacks that waiting goroutines do not need any
// more.
func TestFreeMemory_Stacks(t *testing.T) {
	// A stack of 32 KB, which the first collection reduces to 16 KB and the second to 8 KB.
	const goroutines, usedSize, wantFreed = 200, 16 << 10, 20 << 10
	var used, done sync.WaitGroup
	end := make(chan struct{})
	for range goroutines {
		used.Add(1)
		done.Go(func() {
			useStack(usedSize)
			used.Done()
			<-end
		})
	}
	used.Wait()
	before := stackSize()
	freeMemory()
	after := stackSize()
	close(end)
	done.Wait()
	if freed := before - min(after, before); freed < goroutines*wantFreed {
		t.Errorf("stacks before %d and after %d bytes: got %d bytes freed, want at least %d", before, after, freed, goroutines*wantFreed)
	}
}

// useStack uses at least size bytes of the stack of the goroutine.
//
//go:noinline
func useStack(size int) byte {
	var frame [1 << 10]byte
	if size > len(frame) {
		frame[size%len(frame)] = useStack(size - len(frame))
	}
	return frame[len(frame)/2]
}
