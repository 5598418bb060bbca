package plan

import (
	"strconv"
	"time"

	"podd/runtime"
)

// Crash back-off of Kubernetes: the first restart is immediate, then after 10s, doubling to
// 5 minutes. Ten minutes without a crash reset it.
const (
	backoffFirst   = 10 * time.Second
	backoffMax     = 5 * time.Minute
	backoffForgive = 10 * time.Minute
)

// backoff returns the delay of the start that follows n consecutive crashes, at most limit;
// a zero limit means 5 minutes.
func backoff(n int, limit time.Duration) time.Duration {
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

// crashes returns how many consecutive crashes preceded the container's exit: the back-off
// step at which it was started, unless it ran long enough.
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

// restartAt returns when an exited container may be restarted. The wait is measured on the
// monotonic clock from the first observation of the exit, minus the time that had passed
// before by the runtime's wall clock. So a clock that jumps can shorten the wait but never
// lengthen it.
func restartAt(c *runtime.Container, seen time.Time, limit time.Duration) time.Time {
	delay := backoff(crashes(c), limit)
	if c.FinishedAt.IsZero() { // the time of the exit is unknown
		return seen.Add(delay)
	}
	passed := min(max(seen.Sub(c.FinishedAt), 0), delay)
	return seen.Add(delay - passed)
}

// RetryDelay returns the delay before a failed effect is retried after n consecutive
// failures: 1s, doubling to a minute.
func RetryDelay(n int) time.Duration {
	d := time.Second
	for ; n > 1 && d < time.Minute; n-- {
		d *= 2
	}
	return min(d, time.Minute)
}
