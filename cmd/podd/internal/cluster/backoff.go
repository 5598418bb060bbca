package cluster

import (
	"cmp"
	"context"
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

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, cmp.Or(b.first, firstWait)), mostWait)
	return b.last
}

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
