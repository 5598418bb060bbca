package cluster

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The shortest and the longest wait between attempts. The kubelet has the same limits.
const (
	firstWait = 200 * time.Millisecond
	maxWait   = 7 * time.Second
)

// A backoff computes the waits between failed attempts. Each wait is twice as long as the
// previous wait. The zero value starts with firstWait.
type backoff struct {
	lastWait    time.Duration
	initialWait time.Duration // the first wait; 0 means firstWait
}

// next returns the next wait, at most maxWait.
func (b *backoff) next() time.Duration { return b.nextUpTo(maxWait) }

// nextUpTo returns the next wait, at most limit.
func (b *backoff) nextUpTo(limit time.Duration) time.Duration {
	b.lastWait = min(max(2*b.lastWait, cmp.Or(b.initialWait, firstWait)), limit)
	return b.lastWait
}

// withJitter returns d minus a random duration of at most a quarter of d. The random part keeps
// nodes and watches that were interrupted at the same time from reconnecting at the same time.
func withJitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// sleep waits for d and returns true. If ctx is done first, sleep returns false at once.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
