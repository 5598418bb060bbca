package daemon

import (
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

// TestProfileContention checks that the block and mutex profiles record waits for a mutex, until the
// profiles are disabled.
func TestProfileContention(t *testing.T) {
	before := runtime.SetMutexProfileFraction(-1)
	t.Cleanup(func() {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(before)
	})
	profileContention(true)
	count := func(profile string) int { return pprof.Lookup(profile).Count() }
	for deadline := time.Now().Add(5 * time.Minute); count("block") == 0 || count("mutex") == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d samples in the block profile and %d in the mutex profile, want at least one in each", count("block"), count("mutex"))
		}
		waitForMutex()
	}
	profileContention(false)
	if rate := runtime.SetMutexProfileFraction(-1); rate != 0 {
		t.Errorf("rate of the disabled mutex profile: got %d, want 0", rate)
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
