package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slowEntry is how long an entry counts: a call that takes longer waits for
// something, not for the machine, and must not keep others out.
const slowEntry = 2 * time.Second

// rank orders those who wait at a Gate: within one, first come first served.
type rank int

// A pod that has its sandbox is almost there, and one that lost a container
// is missed: of a hundred pods written at once the first runs at once and not
// when all sandboxes are made.
const (
	forContainer rank = iota
	forSandbox
	ranks
)

// Gate bounds how many sandboxes and containers are started at once, so that
// a burst of pods is faster than the machine's own contention. Safe for
// concurrent use.
type Gate struct {
	mu      sync.Mutex // guards all following fields
	free    int
	waiting [ranks][]chan struct{} // closed when a place is handed over
}

// NewGate admits n at once; n is at least 1.
func NewGate(n int) *Gate { return &Gate{free: max(n, 1)} }

// enter waits for a place. The place is free again once leave is called, or
// after a while if that takes long. leave must be called exactly once.
func (g *Gate) enter(ctx context.Context, r rank) (leave func(), err error) {
	if turn := g.queue(r); turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			if !g.unqueue(r, turn) {
				g.release() // it was handed over meanwhile
			}
			return nil, ctx.Err()
		}
	}
	slow := time.AfterFunc(slowEntry, g.release)
	return func() {
		if slow.Stop() {
			g.release()
		}
	}, nil
}

// queue takes a free place and returns nil, or returns what to wait for.
func (g *Gate) queue(r rank) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return nil
	}
	turn := make(chan struct{})
	g.waiting[r] = append(g.waiting[r], turn)
	return turn
}

// unqueue gives waiting up; false says that the place was handed over.
func (g *Gate) unqueue(r rank, turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[r], turn)
	if at < 0 {
		return false
	}
	g.waiting[r] = slices.Delete(g.waiting[r], at, at+1)
	return true
}

// release hands a place to who waits for it first, or frees it.
func (g *Gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.waiting {
		if len(g.waiting[r]) > 0 {
			close(g.waiting[r][0])
			g.waiting[r] = g.waiting[r][1:]
			return
		}
	}
	g.free++
}
