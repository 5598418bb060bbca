package stats

import (
	"context"
	"time"
)

// A cached is a value that is computed on demand, by one caller at a time, and reused for some
// time. Only newCached creates a usable cached. It is safe for concurrent use.
type cached[T any] struct {
	// isIncomplete reports whether a part of the value is missing, so that the next value is
	// computed sooner. Nil means that values are always complete.
	isIncomplete func(T) bool
	lock         chan struct{} // contains one element while unlocked; guards all following fields
	value        T
	computedAt   time.Time // time at which value was computed; zero before the first value
	took         time.Duration
}

func newCached[T any]() *cached[T] {
	k := &cached[T]{lock: make(chan struct{}, 1)}
	k.lock <- struct{}{}
	return k
}

// maxTimeFraction limits the computation of values to 1/maxTimeFraction of the time, or to half of
// the time while values are incomplete.
const maxTimeFraction = 20

// get returns the value if it is not older than age, and otherwise computes a new value. If
// the computation took long, the value is reused for longer than age. Concurrent callers
// wait and get the same value. An error of compute is not cached: get returns it only to the
// caller for which compute was called.
func (k *cached[T]) get(ctx context.Context, age time.Duration, compute func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case <-k.lock:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { k.lock <- struct{}{} }()
	if old := time.Since(k.computedAt); !k.computedAt.IsZero() && (old <= age || old <= k.reuseTime()) {
		return k.value, nil
	}
	began := time.Now()
	v, err := compute(ctx)
	if err != nil {
		return none, err
	}
	k.value, k.computedAt = v, time.Now()
	k.took = k.computedAt.Sub(began)
	return v, nil
}

// reuseTime returns how long a value must be reused because its computation took long. The caller
// must hold the lock.
func (k *cached[T]) reuseTime() time.Duration {
	if k.isIncomplete != nil && k.isIncomplete(k.value) {
		return k.took
	}
	return maxTimeFraction * k.took
}
