package stats

import (
	"context"
	"time"
)

// cached is a cached value that is computed on demand, by one caller at a time, and reused
// for a while. The zero value is not usable. Safe for concurrent use.
type cached[T any] struct {
	// lacks reports whether a part of a value is missing, so that the next one is computed
	// sooner. Nil: never.
	lacks func(T) bool
	turn  chan struct{} // holds one element while free; it guards all following fields
	value T
	at    time.Time // when value was computed; zero: never
	took  time.Duration
}

func newCached[T any]() *cached[T] {
	k := &cached[T]{turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// maxTimeFraction limits the fraction of the time, one in so many, that is spent on computing
// values. While a part is missing, it is one half.
const maxTimeFraction = 20

// get returns the value if it is not older than age, or else a new one. If the
// computation took long, the value is reused longer. Concurrent callers wait and get the same
// value. An error is returned to the caller that computed, and is not cached.
func (k *cached[T]) get(ctx context.Context, age time.Duration, make func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case <-k.turn:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { k.turn <- struct{}{} }()
	if old := time.Since(k.at); !k.at.IsZero() && (old <= age || old <= k.rest()) {
		return k.value, nil
	}
	began := time.Now()
	v, err := make(ctx)
	if err != nil {
		return none, err
	}
	k.value, k.at = v, time.Now()
	k.took = k.at.Sub(began)
	return v, nil
}

// rest returns how long nothing is computed after a value that took long. The caller must
// hold turn.
func (k *cached[T]) rest() time.Duration {
	if k.lacks != nil && k.lacks(k.value) {
		return k.took
	}
	return maxTimeFraction * k.took
}
