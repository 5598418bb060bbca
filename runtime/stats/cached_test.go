package stats

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestKept: many who ask have it made once; an error is not kept, and who gives
// up waits for nobody.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCached[int]()
		made := 0
		ask := func(takes time.Duration) int {
			n, err := k.get(t.Context(), time.Second, func(context.Context) (int, error) {
				time.Sleep(takes)
				made++
				return made, nil
			})
			if err != nil {
				t.Error(err)
			}
			return n
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if n := ask(10 * time.Millisecond); n != 1 {
					t.Errorf("got %d, want the first", n)
				}
			})
		}
		all.Wait()
		time.Sleep(1001 * time.Millisecond)
		if n := ask(time.Minute); n != 2 {
			t.Errorf("after its time: got %d", n)
		}
		time.Sleep(19 * time.Minute) // what takes a minute is good for twenty
		if n := ask(0); n != 2 {
			t.Errorf("what took long: got %d", n)
		}
		time.Sleep(2 * time.Minute)
		broken := errors.New("no disk")
		if _, err := k.get(t.Context(), time.Second, func(context.Context) (int, error) { return 0, broken }); err != broken {
			t.Errorf("got %v", err)
		}
		if n := ask(0); n != 3 {
			t.Errorf("after an error: got %d", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		<-k.turn
		if _, err := k.get(ctx, 0, nil); err != context.Canceled {
			t.Errorf("who gave up got %v", err)
		}
		k.turn <- struct{}{}
	})
}
