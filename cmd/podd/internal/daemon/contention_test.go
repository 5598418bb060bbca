package daemon

import (
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

// TestProfileContention checks that the block and mutex profiles record waits for a mutex.
func TestProfileContention(t *testing.T) {
	before := runtime.SetMutexProfileFraction(-1)
	t.Cleanup(func() {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(before)
	})
	profileContention()
	count := func(profile string) int { return pprof.Lookup(profile).Count() }
	for deadline := time.Now().Add(10 * time.Second); count("block") == 0 || count("mutex") == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d samples in the block profile and %d in the mutex profile, want at least one in each", count("block"), count("mutex"))
		}
		waitForMutex()
	}
}

// waitForMutex locks a mutex that another goroutine holds. The other goroutine releases it soon, so
// waitForMutex may not have to wait.
func waitForMutex() {
	var mu sync.Mutex
	mu.Lock()
	time.AfterFunc(time.Millisecond, mu.Unlock)
	mu.Lock()
	mu.Unlock() //lint:ignore SA2001 the mutex is only locked to wait for it
}
