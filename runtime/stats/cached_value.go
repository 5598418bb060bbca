package stats

import (
	"context"
	"time"
)

// A cachedValue computes a value on demand, by one caller at a time, and reuses it for some time.
// The zero cachedValue is not usable; see newCachedValue. A cachedValue is safe for concurrent use.
type cachedValue[T any] struct {
	// isIncomplete reports whether a part of the value is missing, so that the next value is
	// computed sooner. Nil means that values are always complete.
	isIncomplete func(T) bool
	lock         chan struct{} // contains one element while unlocked; guards all following fields
	value        T
	computedAt   time.Time     // time at which value was computed; zero before the first value
	computeTime  time.Duration // duration of the last computation
}

func newCachedValue[T any]() *cachedValue[T] {
	k := &cachedValue[T]{lock: make(chan struct{}, 1)}
	k.lock <- struct{}{}
	return k
}

// maxTimeFraction limits the computation of values to 1/maxTimeFraction of the time, or to half of
// the time while values are incomplete.
const maxTimeFraction = 20

// get returns the value if it is not older than age, and otherwise computes a new value. If
// the computation took long, the value is reused for longer than age. Concurrent callers
// wait and get the same value. An error of compute is not cached: get returns it only to the caller
// for which compute was called.
func (k *cachedValue[T]) get(ctx context.Context, age time.Duration, compute func(context.Context) (T, error)) (T, error) {
	var zero T
	select {
	case <-k.lock:
	case <-ctx.Done():
		return zero, ctx.Err()
	}
	defer func() { k.lock <- struct{}{} }()
	if valueAge := time.Since(k.computedAt); !k.computedAt.IsZero() && (valueAge <= age || valueAge <= k.reuseTime()) {
		return k.value, nil
	}
	start := time.Now()
	v, err := compute(ctx)
	if err != nil {
		return zero, err
	}
	k.value, k.computedAt = v, time.Now()
	k.computeTime = k.computedAt.Sub(start)
	return v, nil
}

// reuseTime returns how long a value must be reused because its computation took long. The caller
// must hold the lock.
func (k *cachedValue[T]) reuseTime() time.Duration {
	if k.isIncomplete != nil && k.isIncomplete(k.value) {
		return k.computeTime
	}
	return maxTimeFraction * k.computeTime
}
