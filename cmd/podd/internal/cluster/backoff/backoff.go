// Package backoff computes the waits between the attempts of a request.
package backoff

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The shortest and the longest wait between attempts. The kubelet has the same limits.
const (
	FirstWait = 200 * time.Millisecond
	MaxWait   = 7 * time.Second
)

// A Backoff computes the waits between failed attempts. Each wait is twice as long as the
// previous wait. The zero value starts with FirstWait.
type Backoff struct {
	lastWait    time.Duration
	InitialWait time.Duration // the first wait; 0 means FirstWait
}

// Next returns the next wait, at most MaxWait.
func (b *Backoff) Next() time.Duration { return b.NextUpTo(MaxWait) }

// NextUpTo returns the next wait, at most limit.
func (b *Backoff) NextUpTo(limit time.Duration) time.Duration {
	b.lastWait = min(max(2*b.lastWait, cmp.Or(b.InitialWait, FirstWait)), limit)
	return b.lastWait
}

// WithJitter returns d minus a random duration of at most a quarter of d. The random part keeps
// nodes and watches that were interrupted at the same time from reconnecting at the same time.
func WithJitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// Sleep waits for d and returns true. If ctx is done first, Sleep returns false at once.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
