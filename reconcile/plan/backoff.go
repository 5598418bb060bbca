package plan

import (
	"strconv"
	"time"

	"podd/runtime"
)

// The crash back-off of Kubernetes: the first restart is immediate, then 10s
// doubling to 5 minutes; ten minutes without a crash forgive everything.
const (
	backoffFirst   = 10 * time.Second
	backoffMax     = 5 * time.Minute
	backoffForgive = 10 * time.Minute
)

// Backoff is the delay before the start that follows n crashes in a row, at
// most limit; a zero limit is 5 minutes.
func Backoff(n int, limit time.Duration) time.Duration {
	if limit <= 0 {
		limit = backoffMax
	}
	if n <= 0 {
		return 0
	}
	d := backoffFirst
	for ; n > 1 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// crashes is how many crashes in a row led to the container's end, itself
// not counted: the step it was started at, unless it ran long enough.
func crashes(c *runtime.Container) int {
	if !c.StartedAt.IsZero() && c.FinishedAt.Sub(c.StartedAt) >= backoffForgive {
		return 0
	}
	n, err := strconv.Atoi(c.Annotations[runtime.AnnotationBackoff])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// restartAt is when an exited container may start again. The wait is measured
// from when the exit was first seen, on the monotonic clock, less what had
// already passed by the runtime's wall clock: a clock that jumps can shorten
// the wait to nothing but never lengthen it.
func restartAt(c *runtime.Container, seen time.Time, limit time.Duration) time.Time {
	delay := Backoff(crashes(c), limit)
	passed := min(max(seen.Sub(c.FinishedAt), 0), delay)
	return seen.Add(delay - passed)
}

// RetryDelay is the wait before a failed effect is tried again, n being how
// often it failed in a row: 1s doubling to a minute.
func RetryDelay(n int) time.Duration {
	d := time.Second
	for ; n > 1 && d < time.Minute; n-- {
		d *= 2
	}
	return min(d, time.Minute)
}
