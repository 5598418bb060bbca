package watchable

import (
	"slices"
	"sync"
	"testing"
)

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestValue checks that Get returns the stored value, and a channel that only the next Set or Update
// closes. All readers of one version must get the same channel.
func TestValue(t *testing.T) {
	var v Value[[]string]
	check := func(when string, want ...string) (changed <-chan struct{}) {
		t.Helper()
		got, changed := v.Get()
		_, second := v.Get()
		if !slices.Equal(got, want) || isClosed(changed) || second != changed {
			t.Errorf("%s: got %q, channel closed %t, the same channel twice %t; want %q, false, true", when, got, isClosed(changed), second == changed, want)
		}
		return changed
	}
	zero := check("zero Value")
	v.Set([]string{"a"})
	if !isClosed(zero) {
		t.Error("after Set: the channel of the zero Value is not closed")
	}
	a := check("after Set", "a")
	v.Update(func(old []string) []string { return append(slices.Clone(old), "b") })
	if !isClosed(a) {
		t.Error("after Update: the channel of the previous value is not closed")
	}
	check("after Update", "a", "b")
	v.Set(nil)
	v.Update(func(old []string) []string { return append(slices.Clone(old), "c") })
	check("after Set without a reader, and Update", "c")
}

// TestValue_UpdateZero checks that Update passes the zero value of T to f before the first Set.
func TestValue_UpdateZero(t *testing.T) {
	var v Value[map[string]int]
	v.Update(func(old map[string]int) map[string]int {
		if old != nil {
			t.Errorf("got old value %v, want nil", old)
		}
		return map[string]int{"a": 1}
	})
	if got, _ := v.Get(); got["a"] != 1 {
		t.Errorf("got %v, want a: 1", got)
	}
}

// TestValue_Concurrent checks that concurrent updates are not lost, and that a reader that waits for
// changes receives the last value.
func TestValue_Concurrent(t *testing.T) {
	var v Value[int]
	const writers, updates = 4, 100
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range updates {
				v.Update(func(n int) int { return n + 1 })
			}
		})
	}
	for {
		n, changed := v.Get()
		if n == writers*updates {
			break
		}
		<-changed
	}
	all.Wait()
}
