// Package memory reduces the anonymous memory of podd, which the kernel cannot reclaim without
// swap. It does not reduce the pages of the program file, because the kernel reclaims these pages
// when it needs memory.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// After the start of many pods at once, the heap contains garbage, but podd allocates too little to
// trigger a garbage collection. When podd becomes idle, a Trimmer therefore starts a garbage
// collection and returns the freed memory to the operating system. The Go runtime would start a
// garbage collection only after two minutes, and would keep a part of the memory.
const (
	// Garbage is spread over the pages of the live objects. A low percentage therefore reduces the
	// memory during a burst and also after it, because pages with live objects cannot be returned.
	busyGCPercent = 30
	// With thousands of pods the heap does not fit into the caches of the CPU, so that CPU time
	// for garbage collection matters more than memory.
	largeHeapGCPercent = 100
	largeHeapSize      = 64 << 20    // bytes
	heapCheckInterval  = time.Second // minimum time between two checks of the heap's size

	idleGCPercent = 20 // low, because an idle podd rarely needs a garbage collection
	idleAfter     = 3 * time.Second
)

// ReduceHeapProfile reduces the number of allocations that are sampled for
// /debug/pprof/heap, because at the default rate of Go the samples take a megabyte.
// GODEBUG=memprofilerate=1 records all allocations. The profile overstates allocations
// before main, because these are sampled at the default rate.
func ReduceHeapProfile() {
	if runtime.MemProfileRate == 512<<10 {
		runtime.MemProfileRate = 4 << 20
	}
}

// LimitStartupHeap makes the garbage collector run often until Trimmer.Run is called. By default the
// heap would grow to 4 MB before the first collection, and the objects that podd keeps would be
// spread over all of its pages.
func LimitStartupHeap() { debug.SetGCPercent(idleGCPercent) }

// A Trimmer returns unused heap memory to the operating system when podd has become idle.
type Trimmer struct{ activity chan struct{} } // capacity 1

// NewTrimmer returns a Trimmer. Run must be called once.
func NewTrimmer() Trimmer { return Trimmer{make(chan struct{}, 1)} }

// RecordActivity records activity. It does not block.
func (t Trimmer) RecordActivity() {
	select {
	case t.activity <- struct{}{}:
	default:
	}
}

// Run trims memory until ctx is done.
func (t Trimmer) Run(ctx context.Context) error {
	debug.SetGCPercent(busyGCPercent)
	percent, lastCheck := busyGCPercent, time.Now()
	setPercent := func(p int) {
		if p != percent { // avoid unnecessary calls, because SetGCPercent stops all goroutines
			percent = p
			debug.SetGCPercent(p)
		}
	}
	idleTimer := time.NewTimer(idleAfter)
	defer idleTimer.Stop()
	for isTrimmed := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-t.activity:
			if isTrimmed || time.Since(lastCheck) >= heapCheckInterval {
				setPercent(chooseGCPercent(liveHeap()))
				lastCheck = time.Now()
			}
			isTrimmed = false
			idleTimer.Reset(idleAfter)
		case <-idleTimer.C:
			setPercent(idleGCPercent)
			freeMemory()
			isTrimmed = true
		}
	}
}

// freeMemory frees unused memory of the heap and of stacks. A garbage collection at most halves the stack
// of a goroutine, so freeMemory repeats it while the stacks shrink by more than an eighth. After the start of
// many pods the stacks of their workers are larger than these workers need while they wait.
func freeMemory() {
	for stacks := stackSize(); ; {
		debug.FreeOSMemory()
		before := stacks
		if stacks = stackSize(); stacks >= before-before/8 {
			return
		}
	}
}

// chooseGCPercent returns the target percentage of the garbage collector for a busy daemon.
// liveBytes is the size of the live heap in bytes.
func chooseGCPercent(liveBytes uint64) int {
	if liveBytes > largeHeapSize {
		return largeHeapGCPercent
	}
	return busyGCPercent
}

// liveHeap returns the size of the heap after the last garbage collection in bytes.
func liveHeap() uint64 { return readMetric("/gc/heap/live:bytes") }

// stackSize returns the memory that is reserved for the stacks of goroutines in bytes.
func stackSize() uint64 { return readMetric("/memory/classes/heap/stacks:bytes") }

// readMetric returns the value of a metric of the Go runtime, or 0 if the runtime does not provide it.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
