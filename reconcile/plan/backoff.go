package plan

import (
	"strconv"
	"time"

	"podd/runtime"
)

// The crash back-off of Kubernetes: the first restart is immediate. The second restart is delayed
// by backoffFirst, and the delay doubles with each crash up to backoffMax. After a container has
// run for backoffReset, its next restart is immediate again.
const (
	backoffFirst = 10 * time.Second
	backoffMax   = 5 * time.Minute
	backoffReset = 10 * time.Minute
)

// backoffDelay returns the delay of the start after n consecutive crashes, at most limit. A zero
// limit means backoffMax.
func backoffDelay(n int, limit time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	if limit <= 0 {
		limit = backoffMax
	}
	return doubledDelay(backoffFirst, n, limit)
}

// doubledDelay returns the delay after n consecutive failures. The delay after the first failure is
// firstDelay. It doubles with each further failure up to limit.
func doubledDelay(firstDelay time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 1 && firstDelay < limit; n-- {
		firstDelay *= 2
	}
	return min(firstDelay, limit)
}

// crashesBeforeStart returns the number of consecutive crashes before the start of container c; 0
// if c ran for at least backoffReset.
func crashesBeforeStart(c *runtime.Container) int {
	if !c.StartedAt.IsZero() && c.FinishedAt.Sub(c.StartedAt) >= backoffReset {
		return 0
	}
	n, err := strconv.Atoi(c.Annotations[runtime.AnnotationBackoffStep])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// restartAt returns the time at which an exited container may be restarted. seenAt is the time,
// with a monotonic clock reading, at which the exit was first observed. The delay begins at that
// time. It is shortened by the time between the exit and the first observation, which is measured
// by the wall clock. So a step of the wall clock can shorten the delay but never lengthen it.
func restartAt(c *runtime.Container, seenAt time.Time, limit time.Duration) time.Time {
	delay := backoffDelay(crashesBeforeStart(c), limit)
	if c.FinishedAt.IsZero() { // the time of the exit is unknown
		return seenAt.Add(delay)
	}
	elapsed := min(max(seenAt.Sub(c.FinishedAt), 0), delay)
	return seenAt.Add(delay - elapsed)
}

// RetryDelay returns the delay before the retry of an effect that has failed n consecutive times.
// The first delay is 1s, and the delay doubles with each failure up to a minute.
func RetryDelay(n int) time.Duration { return doubledDelay(time.Second, n, time.Minute) }
