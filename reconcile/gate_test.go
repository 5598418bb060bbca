package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// visitors are goroutines that enter a gate and stay until they are told.
type visitors struct {
	gate *Gate
	in   []string
	out  map[string]chan struct{}
}

func (v *visitors) enter(ctx context.Context, name string, r rank) {
	out := make(chan struct{})
	v.out[name] = out
	go func() {
		leave, err := v.gate.enter(ctx, r)
		if err != nil {
			return
		}
		v.in = append(v.in, name)
		<-out
		leave()
	}()
	synctest.Wait()
}

func (v *visitors) leave(name string) {
	close(v.out[name])
	synctest.Wait()
}

func (v *visitors) want(t *testing.T, names ...string) {
	t.Helper()
	if !slices.Equal(v.in, names) {
		t.Fatalf("entered: got %q, want %q", v.in, names)
	}
}

func newVisitors(n int) *visitors {
	return &visitors{gate: NewGate(n), out: map[string]chan struct{}{}}
}

func TestGateLetsContainersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVisitors(1)
		v.enter(t.Context(), "s1", forSandbox)
		v.enter(t.Context(), "s2", forSandbox)
		v.enter(t.Context(), "s3", forSandbox)
		v.enter(t.Context(), "c1", forContainer)
		v.enter(t.Context(), "c2", forContainer)
		v.want(t, "s1")
		for _, name := range []string{"s1", "c1", "c2", "s2"} {
			v.leave(name)
		}
		v.want(t, "s1", "c1", "c2", "s2", "s3")
		v.leave("s3")
	})
}

func TestGateForgetsWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVisitors(1)
		ctx, cancel := context.WithCancel(t.Context())
		v.enter(t.Context(), "a", forSandbox)
		v.enter(ctx, "b", forSandbox)
		v.enter(t.Context(), "c", forSandbox)
		cancel()
		synctest.Wait()
		v.leave("a")
		v.want(t, "a", "c")
		v.leave("c")
	})
}

func TestGateDoesNotWaitForTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVisitors(1)
		v.enter(t.Context(), "slow", forSandbox)
		v.enter(t.Context(), "next", forSandbox)
		<-time.After(slowEntry)
		synctest.Wait()
		v.want(t, "slow", "next")
		// The place is not given back twice.
		v.leave("slow")
		v.enter(t.Context(), "last", forSandbox)
		v.want(t, "slow", "next")
		v.leave("next")
		v.want(t, "slow", "next", "last")
		v.leave("last")
	})
}

// However visitors come, go and give up, no more than n are inside, and none
// waits while a place is free.
func TestGateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "places")
		g := NewGate(n)
		inside, waiting := 0, [ranks][]chan struct{}{}
		arrived := func() {
			for r := range waiting {
				waiting[r] = slices.DeleteFunc(waiting[r], func(turn chan struct{}) bool {
					select {
					case <-turn:
						inside++
						return true
					default:
						return false
					}
				})
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			r := rank(rapid.IntRange(0, int(ranks)-1).Draw(t, "rank"))
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				if turn := g.queue(r); turn == nil {
					inside++
				} else {
					waiting[r] = append(waiting[r], turn)
				}
			case 1:
				if inside > 0 {
					inside--
					g.release()
				}
			case 2:
				if last := len(waiting[r]) - 1; last >= 0 {
					if !g.unqueue(r, waiting[r][last]) {
						t.Fatal("one who waits was not found")
					}
					waiting[r] = waiting[r][:last]
				}
			}
			arrived()
			if idle := len(waiting[0])+len(waiting[1]) > 0 && inside < n; inside > n || idle {
				t.Fatalf("%d inside of %d, %d and %d wait", inside, n, len(waiting[0]), len(waiting[1]))
			}
		}
	})
}
