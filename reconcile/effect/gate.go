package effect

import (
	"context"
	"slices"
	"sync"
	"time"
)

// These times and numbers distinguish a slow runtime from a start that hangs for its own
// reason.
const (
	// patience is how long a Gate waits for any start to return before it admits
	// another one beyond its limit, and how long a start must have been under way
	// to count as stuck.
	patience = 10 * time.Second
	// overtakes is how many starts of the same rank, in multiples of the limit, must
	// have begun and returned during a start before it counts as stuck.
	overtakes = 2
	// stretch is how many starts, in multiples of the limit, a Gate admits at most
	// while none returns.
	stretch = 2
)

// rank is the priority of a start at a Gate. Starts of one rank are admitted in the order
// of their arrival.
type rank int

// Containers go first: a pod with a sandbox is almost running, and a pod that lost a
// container is missed. Of a hundred new pods, the first one runs at once, not after all
// sandboxes are created.
const (
	forContainer rank = iota
	forSandbox
	ranks
)

// Gate limits how many sandboxes and containers are started at once, because a
// burst of pods is slower when the runtime works on all of them together.
//
// The limit holds however slow the runtime is: a start keeps its place until it
// returns. Two rules keep starts that hang from blocking all others:
//
//   - A start counts no longer once it is stuck: it has been under way for
//     10 seconds, and twice as many starts of its rank as the limit began after it
//     and returned. The runtime works, so this start waits for something else.
//     Starts of the other rank do not show that, because a network plugin may be
//     slow while containers start fast.
//   - If no start returns for 10 seconds, the Gate has one place more, and another
//     one every 10 seconds, up to twice the limit. The starts that return there
//     show which of the others are stuck; if instead one of the others returns,
//     the place is removed. With all places taken, starts wait until one
//     returns, at the latest when the runtime client's time limit ends it.
//
// A Gate is safe for concurrent use.
type Gate struct {
	limit int

	mu      sync.Mutex // guards all following fields
	inside  []*turn    // in the order of their admission
	extra   int        // places beyond limit, since no start returns
	waiting [ranks][]*turn
	since   time.Time   // of the newest return, admission or extra place
	timer   *time.Timer // gives out extra places; nil before the first wait
}

// turn is a start at a Gate.
type turn struct {
	rank      rank
	admitted  chan struct{} // closed on admission
	since     time.Time     // of admission
	overtaken int           // starts of the same rank that were admitted later and have returned
	stuck     bool          // it no longer counts
}

// NewGate returns a gate that admits n starts at once; n is at least 1.
func NewGate(n int) *Gate { return &Gate{limit: max(n, 1)} }

// enter waits for a place. leave gives it back and must be called exactly once. While a
// place is held, only the runtime may be called, because its calls end at the client's time
// limit. Anything else could hang.
func (g *Gate) enter(ctx context.Context, r rank) (leave func(), err error) {
	e := g.queue(r)
	select {
	case <-e.admitted:
	case <-ctx.Done():
		if !g.unqueue(r, e) {
			g.release(e) // it was admitted in the meantime
		}
		return nil, ctx.Err()
	}
	return func() { g.release(e) }, nil
}

// queue admits a start or puts it in the queue of its rank.
func (g *Gate) queue(r rank) *turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &turn{rank: r, admitted: make(chan struct{})}
	g.waiting[r] = append(g.waiting[r], e)
	g.admitLocked()
	return e
}

// unqueue takes a start out of the queue; it returns false if the start was
// admitted.
func (g *Gate) unqueue(r rank, e *turn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[r], e)
	if at < 0 {
		return false
	}
	g.waiting[r] = slices.Delete(g.waiting[r], at, at+1)
	return true
}

// release ends a start, and notes which of the others it overtook.
func (g *Gate) release(e *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.inside, e)
	g.inside = slices.Delete(g.inside, at, at+1)
	now, counted := time.Now(), 0
	for _, earlier := range g.inside[:at] {
		if earlier.rank == e.rank {
			earlier.overtaken++
		}
		if !earlier.stuck && earlier.overtaken >= overtakes*g.limit && now.Sub(earlier.since) >= patience {
			earlier.stuck = true
			g.extra--
		}
		if !earlier.stuck {
			counted++
		}
	}
	// An extra place is kept only while the newer starts alone return.
	if counted < g.limit {
		g.extra--
	}
	g.extra, g.since = max(g.extra, 0), now
	g.admitLocked()
}

// admitLocked admits waiting starts to the places that are free.
func (g *Gate) admitLocked() {
	counted := 0
	for _, e := range g.inside {
		if !e.stuck {
			counted++
		}
	}
	for ; counted < g.limit+g.extra; counted++ {
		e := g.nextLocked()
		if e == nil {
			return
		}
		e.since = time.Now()
		g.since = e.since
		g.inside = append(g.inside, e)
		close(e.admitted)
	}
	g.watchLocked()
}

// nextLocked takes the first of the waiting starts; nil if there is none.
func (g *Gate) nextLocked() *turn {
	for r := range g.waiting {
		if len(g.waiting[r]) > 0 {
			e := g.waiting[r][0]
			g.waiting[r] = g.waiting[r][1:]
			return e
		}
	}
	return nil
}

// watchLocked sets the timer for the next extra place.
func (g *Gate) watchLocked() {
	if g.extra >= (stretch-1)*g.limit || len(g.waiting[forContainer])+len(g.waiting[forSandbox]) == 0 {
		return
	}
	d := max(time.Until(g.since.Add(patience)), 0)
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.stretch)
		return
	}
	g.timer.Reset(d)
}

// stretch adds a place if no start has returned for long enough.
func (g *Gate) stretch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.since) < patience {
		g.watchLocked()
		return
	}
	if g.extra < (stretch-1)*g.limit {
		g.extra++
	}
	g.since = time.Now()
	g.admitLocked()
}
