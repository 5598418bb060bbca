package cluster

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the wait between attempts are the kubelet's.
const (
	firstWait = 200 * time.Millisecond
	maxWait   = 7 * time.Second
)

// A backoff computes the waits between failed attempts. Each wait is twice the last one. The
// zero value starts with firstWait.
type backoff struct {
	last  time.Duration
	first time.Duration // 0: firstWait
}

// next returns the next wait, at most maxWait.
func (b *backoff) next() time.Duration { return b.upTo(maxWait) }

// upTo returns the next wait, at most limit.
func (b *backoff) upTo(limit time.Duration) time.Duration {
	b.last = min(max(2*b.last, cmp.Or(b.first, firstWait)), limit)
	return b.last
}

// spread reduces d by a random part of up to a quarter, so that watches or nodes that were
// interrupted together do not return together.
func spread(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// sleep waits for d. It returns false if ctx is done before that.
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
