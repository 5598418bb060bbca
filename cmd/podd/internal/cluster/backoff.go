package cluster

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The waits between attempts are those of the kubelet.
const (
	firstWait = 200 * time.Millisecond
	maxWait   = 7 * time.Second
)

// A backoff computes the waits between failed attempts. The zero value starts with
// firstWait.
type backoff struct {
	last  time.Duration
	first time.Duration // 0: firstWait
}

func (b *backoff) next() time.Duration { return b.upTo(maxWait) }

func (b *backoff) upTo(most time.Duration) time.Duration {
	b.last = min(max(2*b.last, cmp.Or(b.first, firstWait)), most)
	return b.last
}

// spread reduces d by up to a quarter, so that watches or nodes that were cut off
// together do not return together.
func spread(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// sleep returns false if ctx is done before d has passed.
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
