package stats

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCachedValue checks that concurrent callers share one computation, that an error is not
// cached, and that a canceled caller does not wait.
func TestCachedValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCachedValue[int]()
		computed := 0
		get := func(takes time.Duration) int {
			n, err := c.get(t.Context(), time.Second, func(context.Context) (int, error) {
				time.Sleep(takes)
				computed++
				return computed, nil
			})
			if err != nil {
				t.Error(err)
			}
			return n
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if n := get(10 * time.Millisecond); n != 1 {
					t.Errorf("concurrent call: got value %d, want 1", n)
				}
			})
		}
		all.Wait()
		time.Sleep(1001 * time.Millisecond)
		if n := get(time.Minute); n != 2 {
			t.Errorf("call after the maximum age of the value: got value %d, want 2", n)
		}
		time.Sleep(19 * time.Minute) // a value whose computation took one minute is reused for twenty minutes
		if n := get(0); n != 2 {
			t.Errorf("call 19 minutes after a computation that took a minute: got value %d, want 2", n)
		}
		time.Sleep(2 * time.Minute)
		broken := errors.New("no disk")
		if _, err := c.get(t.Context(), time.Second, func(context.Context) (int, error) { return 0, broken }); err != broken {
			t.Errorf("failing computation: got error %v, want %v", err, broken)
		}
		if n := get(0); n != 3 {
			t.Errorf("call after a failing computation: got value %d, want 3", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		<-c.lock
		if _, err := c.get(ctx, 0, nil); err != context.Canceled {
			t.Errorf("canceled call: got error %v, want Canceled", err)
		}
		c.lock <- struct{}{}
	})
}
