package effect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// starts are goroutines that enter a gate and stay until leave is called.
type starts struct {
	gate *Gate
	in   []string
	out  map[string]chan struct{}
}

func (v *starts) enter(ctx context.Context, name string, r rank) {
	out := make(chan struct{})
	v.out[name] = out
	go func() {
		leave, err := v.gate.acquire(ctx, r)
		if err != nil {
			return
		}
		v.in = append(v.in, name)
		<-out
		leave(nil)
	}()
	synctest.Wait()
}

func (v *starts) leave(name string) {
	close(v.out[name])
	synctest.Wait()
}

func (v *starts) want(t *testing.T, names ...string) {
	t.Helper()
	if !slices.Equal(v.in, names) {
		t.Fatalf("entered: got %q, want %q", v.in, names)
	}
}

func newStarts(n int) *starts {
	return &starts{gate: NewGate(n), out: map[string]chan struct{}{}}
}

func TestGate_ContainersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newStarts(1)
		v.enter(t.Context(), "s1", sandboxRank)
		v.enter(t.Context(), "s2", sandboxRank)
		v.enter(t.Context(), "s3", sandboxRank)
		v.enter(t.Context(), "c1", containerRank)
		v.enter(t.Context(), "c2", containerRank)
		v.want(t, "s1")
		for _, name := range []string{"s1", "c1", "c2", "s2"} {
			v.leave(name)
		}
		v.want(t, "s1", "c1", "c2", "s2", "s3")
		v.leave("s3")
	})
}

func TestGate_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newStarts(1)
		ctx, cancel := context.WithCancel(t.Context())
		v.enter(t.Context(), "a", sandboxRank)
		v.enter(ctx, "b", sandboxRank)
		v.enter(t.Context(), "c", sandboxRank)
		cancel()
		synctest.Wait()
		v.leave("a")
		v.want(t, "a", "c")
		v.leave("c")
	})
}

func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// TestGate_SlowRuntime checks the number of starts in progress if the runtime is slow. It is at
// most twice the limit and, after some starts have returned, at most the limit.
func TestGate_SlowRuntime(t *testing.T) {
	for took, want := range map[time.Duration]int{3 * time.Second: 4, 9 * time.Second: 4, 25 * time.Second: 6, 100 * time.Second: 8} {
		inBubble(t, took.String(), func(t *testing.T) {
			g := NewGate(4)
			var inside, most atomic.Int32
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					release, err := g.acquire(t.Context(), sandboxRank)
					if err != nil {
						t.Error(err)
						return
					}
					defer release(nil)
					most.Store(max(most.Load(), inside.Add(1)))
					<-time.After(took)
					inside.Add(-1)
				})
			}
			all.Wait()
			if int(most.Load()) > want {
				t.Errorf("starts at once: got %d, want at most %d", most.Load(), want)
			}
		})
	}
}

// TestGate_Hangs checks that starts that never return delay other starts only for a limited time.
// The number of these starts may be the limit or higher.
func TestGate_Hangs(t *testing.T) {
	for _, c := range []struct {
		limit, hang int
		within      time.Duration // until all others have started
	}{
		{1, 1, time.Minute},
		{4, 1, 10 * time.Second},
		{4, 4, time.Minute},
		{4, 7, 2 * time.Minute},
	} {
		inBubble(t, fmt.Sprintf("%d of %d", c.hang, c.limit), func(t *testing.T) {
			g := NewGate(c.limit)
			hang := make(chan struct{})
			var hanging, others sync.WaitGroup
			for range c.hang {
				hanging.Go(func() {
					release, err := g.acquire(t.Context(), sandboxRank)
					if err != nil {
						t.Error(err)
						return
					}
					<-hang
					release(nil)
				})
			}
			synctest.Wait()
			began := time.Now()
			for range 50 {
				others.Go(func() {
					release, err := g.acquire(t.Context(), sandboxRank)
					if err != nil {
						t.Error(err)
						return
					}
					<-time.After(500 * time.Millisecond)
					release(nil)
				})
			}
			others.Wait()
			if took := time.Since(began); took > c.within {
				t.Errorf("time until all other starts returned: got %v, want at most %v", took, c.within)
			}
			close(hang)
			hanging.Wait()
			if g.addedSlots != 0 || len(g.active) != 0 {
				t.Errorf("in the end: got %d active starts and %d added slots, want none", len(g.active), g.addedSlots)
			}
		})
	}
}

// TestGate_SlowSandboxes checks that slow starts of sandboxes are not treated as stuck because starts
// of containers are fast. Each start of a sandbox takes a minute, for example because the network
// plugin is slow.
func TestGate_SlowSandboxes(t *testing.T) {
	for name, loops := range map[string]int{"a burst of pods": 0, "a burst of pods and crash loops": 20} {
		inBubble(t, name, func(t *testing.T) {
			g := NewGate(4)
			var inside, most atomic.Int32
			start := func(r rank, took time.Duration, count int32) {
				release, err := g.acquire(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				defer release(nil)
				most.Store(max(most.Load(), inside.Add(count)))
				<-time.After(took)
				inside.Add(-count)
			}
			done := make(chan struct{})
			var pods, crashes sync.WaitGroup
			for i := range loops {
				crashes.Go(func() {
					<-time.After(time.Duration(i) * 500 * time.Millisecond)
					for {
						start(containerRank, 500*time.Millisecond, 0)
						select {
						case <-done:
							return
						case <-time.After(time.Minute):
						}
					}
				})
			}
			for range 100 {
				pods.Go(func() {
					start(sandboxRank, time.Minute, 1)
					for range 3 {
						start(containerRank, 500*time.Millisecond, 0)
					}
				})
			}
			pods.Wait()
			close(done)
			crashes.Wait()
			if most.Load() > 8 {
				t.Errorf("sandboxes created at once: got %d, want at most 8", most.Load())
			}
		})
	}
}

// TestGate_Adaptive checks that an adaptive Gate lowers its limit if the runtime is slower with more
// starts in progress, and that it ignores starts that fail.
func TestGate_Adaptive(t *testing.T) {
	for name, test := range map[string]struct {
		err             error
		lowest, highest int // range of the final limit
	}{"succeed": {nil, 2, 3}, "fail": {context.Canceled, 8, 8}} {
		synctest.Test(t, func(t *testing.T) {
			g := NewAdaptiveGate(8, 32)
			var active atomic.Int32
			start := func(r rank) {
				release, err := g.acquire(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(runtimeModel{2, 0.2}.latency(r, int(active.Add(1))))
				active.Add(-1)
				release(test.err)
			}
			var pods sync.WaitGroup
			for range 400 {
				pods.Go(func() { start(sandboxRank); start(containerRank) })
			}
			pods.Wait()
			if g.tuner.limit < test.lowest || g.tuner.limit > test.highest {
				t.Errorf("starts that %s: got the limit %d, want %d to %d", name, g.tuner.limit, test.lowest, test.highest)
			}
		})
	}
}

// TestGate_Property checks a Gate with the limit n whose starts return before they count as stuck. No
// more than n starts are active, and no start waits while fewer than n are active.
func TestGate_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "places")
		g := NewGate(n)
		var inside []*gatedStart
		waiting := [rankCount][]*gatedStart{}
		arrived := func() {
			for r := range waiting {
				waiting[r] = slices.DeleteFunc(waiting[r], func(e *gatedStart) bool {
					select {
					case <-e.admitted:
						inside = append(inside, e)
						return true
					default:
						return false
					}
				})
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			r := rank(rapid.IntRange(0, int(rankCount)-1).Draw(t, "rank"))
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				waiting[r] = append(waiting[r], g.enqueue(r))
			case 1:
				if len(inside) > 0 {
					at := rapid.IntRange(0, len(inside)-1).Draw(t, "which")
					g.freeSlot(inside[at], nil)
					inside = slices.Delete(inside, at, at+1)
				}
			case 2:
				if last := len(waiting[r]) - 1; last >= 0 {
					if !g.dequeue(r, waiting[r][last]) {
						t.Fatal("dequeue of a waiting start: got false, want true")
					}
					waiting[r] = waiting[r][:last]
				}
			}
			arrived()
			if idle := len(waiting[0])+len(waiting[1]) > 0 && len(inside) < n; len(inside) > n || idle {
				t.Fatalf("got %d admitted starts while %d containers and %d sandboxes wait, want %d admitted", len(inside), len(waiting[containerRank]), len(waiting[sandboxRank]), n)
			}
		}
	})
}
