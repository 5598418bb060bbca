package cluster

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The waits between attempts are the kubelet's.
const (
	firstWait = 200 * time.Millisecond
	mostWait  = 7 * time.Second
)

// backoff has the waits between attempts that fail; the zero value begins anew.
type backoff struct {
	last  time.Duration
	first time.Duration // 0: firstWait
}

func (b *backoff) next() time.Duration { return b.upTo(mostWait) }

func (b *backoff) upTo(most time.Duration) time.Duration {
	b.last = min(max(2*b.last, cmp.Or(b.first, firstWait)), most)
	return b.last
}

// spread is up to a quarter less: what an outage cut at once is not to come back
// at once, of one node or of many.
func spread(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// sleep returns false when ctx was done before.
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
