package stats

import (
	"context"
	"time"
)

// kept is a value that is made when somebody asks for it, by one at a time, and
// is good for a while. Its zero value cannot be used; safe for concurrent use.
type kept[T any] struct {
	// lacks says of a value that part of it was never made: the next one is made
	// sooner. Nil: none does.
	lacks func(T) bool
	turn  chan struct{} // holds one element while free; it guards all following fields
	value T
	at    time.Time // when value was made; zero: never
	took  time.Duration
}

func newKept[T any]() *kept[T] {
	k := &kept[T]{turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// mostOfTime is the part of the time, one in so many, that may go into making
// values anew; into going on with one that lacks something, half of it.
const mostOfTime = 20

// get returns the value if it is not older than age, else a new one. What takes
// long to make is good for longer. Who waits while another makes one gets that
// one. An error is told to who made it and not kept.
func (k *kept[T]) get(ctx context.Context, age time.Duration, make func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case <-k.turn:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { k.turn <- struct{}{} }()
	if !k.at.IsZero() && time.Since(k.at) <= max(age, k.rest()) {
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

// rest is how long nothing is made after a value that took long. It is the caller's
// turn.
func (k *kept[T]) rest() time.Duration {
	if k.lacks != nil && k.lacks(k.value) {
		return k.took
	}
	return mostOfTime * k.took
}
