package daemon

import (
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

// TestProfileContention checks that the block and mutex profiles record a goroutine that waits for a
// mutex.
func TestProfileContention(t *testing.T) {
	before := runtime.SetMutexProfileFraction(-1)
	t.Cleanup(func() {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(before)
	})
	profileContention()
	var mu sync.Mutex
	var waiting sync.WaitGroup
	mu.Lock()
	waiting.Go(func() {
		mu.Lock()
		defer mu.Unlock()
	})
	time.Sleep(10 * time.Millisecond) // the goroutine waits for the mutex
	mu.Unlock()
	waiting.Wait()
	for _, name := range []string{"block", "mutex"} {
		if n := pprof.Lookup(name).Count(); n == 0 {
			t.Errorf("profile %s: got no samples, want at least one", name)
		}
	}
}
