package effect

import (
	"context"
	"slices"
	"sync"
	"time"
)

// These limits distinguish a slow runtime from a single start that hangs, for example because a
// network plugin does not respond.
const (
	// If no start returns for stuckTimeout, a Gate adds a slot. A start does not count as stuck
	// before stuckTimeout has passed.
	stuckTimeout = 10 * time.Second
	// A start counts as stuck only after minLaterReturns*limit starts of its rank that were
	// admitted later have returned. limit is the limit of the Gate.
	minLaterReturns = 2
	// A Gate has at most maxSlotFactor times its limit as slots.
	maxSlotFactor = 2
)

// A rank is the priority of a start at a Gate. A Gate admits the starts of one rank in the order of
// their arrival.
type rank int

// Containers are started before sandboxes. A pod with a sandbox is almost running, and a pod whose
// container has exited serves requests again sooner. If a hundred pods are created, the first pod
// runs before all sandboxes are created.
const (
	containerRank rank = iota
	sandboxRank
	rankCount
)

// A Gate limits how many sandboxes and containers are started at once, because the runtime needs
// more time for a burst of pods if it starts all pods together.
//
// A Gate has as many slots as its limit. The limit is fixed, or a limitTuner adapts it. A start
// occupies a slot until it returns. Two rules prevent starts that hang from blocking all others:
//
//   - A stuck start does not occupy a slot. A start is stuck if it began at least 10 seconds
//     ago, and at least twice as many later starts of its rank as the limit have returned.
//     The later starts show that the runtime works, so that the stuck start must wait for
//     something else. Starts of the other rank are not counted, because a network plugin may
//     be slow while containers start fast.
//   - If no start returns for 10 seconds, the Gate adds a slot, and another slot every 10
//     seconds, up to twice the limit. The starts that return from an added slot show which
//     earlier starts are stuck. If an earlier start returns instead, an added slot is
//     removed. If all slots are occupied, starts wait until one returns. Each start returns
//     when the time limit of the runtime client expires, or earlier.
//
// A Gate is safe for concurrent use.
type Gate struct {
	mu           sync.Mutex    // guards all following fields
	tuner        *limitTuner   // contains the limit
	active       []*gatedStart // in the order of their admission
	addedSlots   int           // number of slots that were added because no start returned
	waiting      [rankCount][]*gatedStart
	lastProgress time.Time   // time of the last return or admission of a start, or of the last addition of a slot
	timer        *time.Timer // calls addSlot; nil before the first wait
}

// A gatedStart is a start of a sandbox or container that waits at a Gate or was admitted by it.
type gatedStart struct {
	rank         rank
	admitted     chan struct{} // closed on admission
	admittedAt   time.Time     // time of admission
	limit        int           // limit of the Gate at admission
	laterReturns int           // number of starts of the same rank that were admitted later and have returned
	isStuck      bool          // whether the start counts as stuck and therefore occupies no slot
}

// NewGate returns a Gate with n slots, or with one slot if n is less than 1.
func NewGate(n int) *Gate {
	n = max(n, 1)
	return &Gate{tuner: newLimitTuner(n, n, n)}
}

// NewAdaptiveGate returns a Gate that changes its limit while it is used, so that pods start as
// fast as possible. The first limit is n, which must be at least 1. The limit never exceeds
// highest, which must be at least n.
func NewAdaptiveGate(n, highest int) *Gate {
	return &Gate{tuner: newLimitTuner(1, n, highest)}
}

// acquire waits for a slot or until ctx is done. release frees the slot and must be called exactly
// once, with the result of the start. Before the caller calls release, it may only call the
// runtime, because such a call returns when the time limit of the client expires. Other operations
// could hang.
func (g *Gate) acquire(ctx context.Context, r rank) (release func(error), err error) {
	e := g.enqueue(r)
	select {
	case <-e.admitted:
	case <-ctx.Done():
		if !g.dequeue(r, e) { // free the slot, because the start was admitted in the meantime
			g.freeSlot(e, ctx.Err())
		}
		return nil, ctx.Err()
	}
	return func(err error) { g.freeSlot(e, err) }, nil
}

// enqueue adds a start to the queue of its rank, and admits it if a slot is free.
func (g *Gate) enqueue(r rank) *gatedStart {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &gatedStart{rank: r, admitted: make(chan struct{})}
	g.waiting[r] = append(g.waiting[r], e)
	g.admitLocked()
	return e
}

// dequeue removes a start from the queue of its rank. removed is false if the start was admitted.
func (g *Gate) dequeue(r rank, e *gatedStart) (removed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[r], e)
	if i < 0 {
		return false
	}
	g.waiting[r] = slices.Delete(g.waiting[r], i, i+1)
	return true
}

// freeSlot frees the slot of e, a start that has returned with the result err. For each active
// start of the same rank that was admitted before e, freeSlot increases laterReturns by one. If
// such a start is now stuck, freeSlot marks it.
func (g *Gate) freeSlot(e *gatedStart, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.active, e)
	g.active = slices.Delete(g.active, i, i+1)
	now, occupiedSlots := time.Now(), 0
	for _, start := range g.active[:i] {
		if start.rank == e.rank {
			start.laterReturns++
		}
		if !start.isStuck && start.laterReturns >= minLaterReturns*g.tuner.limit && now.Sub(start.admittedAt) >= stuckTimeout {
			start.isStuck = true
			g.addedSlots--
		}
		if !start.isStuck {
			occupiedSlots++
		}
	}
	// If e is one of the earliest starts that occupy the slots of the limit, one added slot is not
	// needed any more.
	if occupiedSlots < g.tuner.limit {
		g.addedSlots--
	}
	g.addedSlots, g.lastProgress = max(g.addedSlots, 0), now
	g.tuneLocked(e, err, now)
	g.admitLocked()
}

// tuneLocked passes the duration of e, a start that has returned, to the tuner, and applies the limit of
// the tuner. It ignores the duration if the start has failed, if the limit has changed since e was
// admitted, or if there are added slots. If no start waits, it ends the burst.
func (g *Gate) tuneLocked(e *gatedStart, err error, now time.Time) {
	waiting := g.waitingLocked()
	switch {
	case waiting == 0:
		g.tuner.endBurst()
	case err == nil && e.limit == g.tuner.limit && g.addedSlots == 0:
		g.tuner.add(e.rank, now.Sub(e.admittedAt), waiting)
	}
}

// waitingLocked returns the number of starts that wait for a slot.
func (g *Gate) waitingLocked() int {
	return len(g.waiting[containerRank]) + len(g.waiting[sandboxRank])
}

// admitLocked admits as many waiting starts as there are free slots.
func (g *Gate) admitLocked() {
	occupiedSlots := 0
	for _, e := range g.active {
		if !e.isStuck {
			occupiedSlots++
		}
	}
	for ; occupiedSlots < g.tuner.limit+g.addedSlots; occupiedSlots++ {
		e := g.nextLocked()
		if e == nil {
			return
		}
		e.admittedAt, e.limit = time.Now(), g.tuner.limit
		g.lastProgress = e.admittedAt
		g.active = append(g.active, e)
		close(e.admitted)
	}
	g.setTimerLocked()
}

// nextLocked removes the first waiting start from its queue and returns it; nil if no start
// waits.
func (g *Gate) nextLocked() *gatedStart {
	for r := range g.waiting {
		if len(g.waiting[r]) > 0 {
			e := g.waiting[r][0]
			g.waiting[r] = g.waiting[r][1:]
			return e
		}
	}
	return nil
}

// setTimerLocked sets the timer that adds the next slot. It does nothing if no start waits, or if
// the Gate has the maximum number of slots.
func (g *Gate) setTimerLocked() {
	if g.addedSlots >= (maxSlotFactor-1)*g.tuner.limit || g.waitingLocked() == 0 {
		return
	}
	d := max(time.Until(g.lastProgress.Add(stuckTimeout)), 0)
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
	if time.Since(g.lastProgress) < stuckTimeout {
		g.setTimerLocked()
		return
	}
	if g.addedSlots < (maxSlotFactor-1)*g.tuner.limit {
		g.addedSlots++
	}
	g.lastProgress = time.Now()
	g.admitLocked()
}
