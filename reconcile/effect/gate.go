package effect

import (
	"context"
	"slices"
	"sync"
	"time"
)

// These limits distinguish a slow runtime from a start that hangs for a reason of its own.
const (
	// stuckTimeout is how long a Gate waits for any start to return before it adds a slot. A
	// start counts as stuck after this time at the earliest.
	stuckTimeout = 10 * time.Second
	// minOvertakes is how many starts of the same rank must begin and return during a start
	// before the start counts as stuck, in multiples of the limit.
	minOvertakes = 2
	// maxStretch is the maximum number of slots while no start returns, in multiples of the
	// limit.
	maxStretch = 2
)

// rank is the priority of a start at a Gate. Starts of one rank are admitted in the order
// of their arrival.
type rank int

// Containers are started before sandboxes, because a pod with a sandbox is almost running,
// and a pod whose container has exited serves requests again sooner. If a hundred pods are
// created, the first pod runs before all sandboxes are created.
const (
	forContainer rank = iota
	forSandbox
	ranks
)

// Gate limits how many sandboxes and containers are started at once, because a
// burst of pods is slower when the runtime works on all of them together.
//
// A Gate has as many slots as its limit, even if the runtime is slow. A start occupies a
// slot until it returns. Two rules prevent starts that hang from blocking all others:
//
//   - A stuck start does not occupy a slot. A start is stuck if it began 10 seconds ago or
//     earlier, and twice as many starts of its rank as the limit began later and have
//     returned. These later starts show that the runtime works, so that the stuck start
//     must wait for something else. Starts of the other rank are not counted, because a
//     network plugin may be slow while containers start fast.
//   - If no start returns for 10 seconds, the Gate adds a slot, and another slot every 10
//     seconds, up to twice the limit. The starts that return from an added slot show which
//     earlier starts are stuck. If an earlier start returns instead, an added slot is
//     removed. If all slots are occupied, starts wait until one returns. Each start returns
//     when the time limit of the runtime client expires, or earlier.
//
// A Gate is safe for concurrent use.
type Gate struct {
	limit int

	mu      sync.Mutex // guards all following fields
	active  []*start   // in the order of their admission
	extra   int        // number of slots that were added because no start returned
	waiting [ranks][]*start
	since   time.Time   // when a start last returned or was admitted, or a slot was added
	timer   *time.Timer // calls addSlot; nil before the first wait
}

// start is the start of a sandbox or container at a Gate.
type start struct {
	rank      rank
	admitted  chan struct{} // closed on admission
	since     time.Time     // time of admission
	overtaken int           // number of starts of the same rank that were admitted later and have returned
	stuck     bool          // whether the start counts as stuck, so that it occupies no slot
}

// NewGate returns a gate that admits n starts at once. If n is less than 1, it admits one.
func NewGate(n int) *Gate { return &Gate{limit: max(n, 1)} }

// acquire waits for a slot or until ctx is done. release frees the slot and must be called exactly
// once. Before release the caller may only call the runtime, because such a call returns at the
// time limit of the client. Other operations could hang.
func (g *Gate) acquire(ctx context.Context, r rank) (release func(), err error) {
	e := g.queue(r)
	select {
	case <-e.admitted:
	case <-ctx.Done():
		if !g.dequeue(r, e) { // the start was admitted in the meantime
			g.end(e)
		}
		return nil, ctx.Err()
	}
	return func() { g.end(e) }, nil
}

// queue adds a start to the queue of its rank, and admits it if a slot is free.
func (g *Gate) queue(r rank) *start {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &start{rank: r, admitted: make(chan struct{})}
	g.waiting[r] = append(g.waiting[r], e)
	g.admitLocked()
	return e
}

// dequeue removes a start from the queue of its rank. removed is false if the start was admitted.
func (g *Gate) dequeue(r rank, e *start) (removed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[r], e)
	if at < 0 {
		return false
	}
	g.waiting[r] = slices.Delete(g.waiting[r], at, at+1)
	return true
}

// end frees the slot of e, a start that has returned. It counts e as a later start for each active
// start of the same rank that was admitted before e, and marks the starts that are now stuck.
func (g *Gate) end(e *start) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.active, e)
	g.active = slices.Delete(g.active, at, at+1)
	now, counted := time.Now(), 0
	for _, earlier := range g.active[:at] {
		if earlier.rank == e.rank {
			earlier.overtaken++
		}
		if !earlier.stuck && earlier.overtaken >= minOvertakes*g.limit && now.Sub(earlier.since) >= stuckTimeout {
			earlier.stuck = true
			g.extra--
		}
		if !earlier.stuck {
			counted++
		}
	}
	// An earlier start has returned. So one of the added slots is not needed any more.
	if counted < g.limit {
		g.extra--
	}
	g.extra, g.since = max(g.extra, 0), now
	g.admitLocked()
}

// admitLocked admits as many waiting starts as there are free slots.
func (g *Gate) admitLocked() {
	counted := 0
	for _, e := range g.active {
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
		g.active = append(g.active, e)
		close(e.admitted)
	}
	g.setTimerLocked()
}

// nextLocked removes the first waiting start from its queue and returns it; nil if no start
// waits.
func (g *Gate) nextLocked() *start {
	for r := range g.waiting {
		if len(g.waiting[r]) > 0 {
			e := g.waiting[r][0]
			g.waiting[r] = g.waiting[r][1:]
			return e
		}
	}
	return nil
}

// setTimerLocked sets the timer that adds the next slot, unless no start waits or the maximum
// number of slots is reached.
func (g *Gate) setTimerLocked() {
	if g.extra >= (maxStretch-1)*g.limit || len(g.waiting[forContainer])+len(g.waiting[forSandbox]) == 0 {
		return
	}
	d := max(time.Until(g.since.Add(stuckTimeout)), 0)
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.addSlot)
		return
	}
	g.timer.Reset(d)
}

// addSlot adds a slot if no start has returned for stuckTimeout.
func (g *Gate) addSlot() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.since) < stuckTimeout {
		g.setTimerLocked()
		return
	}
	if g.extra < (maxStretch-1)*g.limit {
		g.extra++
	}
	g.since = time.Now()
	g.admitLocked()
}
