package reconcile

import (
	"time"
)

// Go's monotonic clock and its timers stop while the host is suspended, but the clock that
// counts from the boot does not. The kubelet measures activeDeadlineSeconds by the wall
// clock, so suspended time counts there, too.
const (
	// suspendPoll is the maximum duration of a worker's timer. While the host is suspended,
	// the timer stops, so that it fires late by the suspended time.
	suspendPoll = time.Minute
	// minSuspend is the shortest suspension that is taken into account. A shorter difference
	// may be the time between the readings of the two clocks.
	minSuspend = time.Second
)

// now returns the time. If the host was suspended since the last call, it moves the times in
// the state back by the suspended duration, so that waits end earlier by that duration.
func (w *worker) now() time.Time {
	r := w.journals.Now()
	if w.clock.Boot == "" {
		w.clock = r
		return r.Now
	}
	// A negative duration corrects an earlier reading that was delayed between the clocks.
	if slept := r.Up - w.clock.Up - r.Now.Sub(w.clock.Now); slept.Abs() >= minSuspend {
		w.clock = r
		w.state = w.state.Shift(-slept)
	}
	return r.Now
}

// wakeBy returns the earlier of at and the next poll for a suspension; zero means never.
func wakeBy(at, now time.Time) time.Time {
	if poll := now.Add(suspendPoll); at.After(poll) {
		return poll
	}
	return at
}
