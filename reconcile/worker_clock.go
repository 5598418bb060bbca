package reconcile

import (
	"time"
)

// While the host is suspended, Go's monotonic clock and its timers stop, but the clock that counts
// from the boot continues. Deadlines include the time during which the host is suspended. This is
// also the case in the kubelet, which measures activeDeadlineSeconds by the wall clock.
const (
	// suspendPollInterval is the maximum duration of a worker's timer. It limits the delay of the
	// timer after a suspension.
	suspendPollInterval = time.Minute
	// minSuspend is the shortest suspension that is detected. A shorter difference may be the
	// time between the readings of the two clocks.
	minSuspend = time.Second
)

// now returns the current time. If the host was suspended since the last call of now, it subtracts
// the duration of the suspension from the times in the state, so that waits end earlier.
func (w *worker) now() time.Time {
	r := w.journals.Now()
	if w.clock.BootID == "" {
		w.clock = r
		return r.Now
	}
	// The duration is negative if an earlier call was delayed between the readings of the two
	// clocks. In that case, the negative duration corrects the error of that call.
	if suspension := r.SinceBoot - w.clock.SinceBoot - r.Now.Sub(w.clock.Now); suspension.Abs() >= minSuspend {
		w.clock = r
		w.state = w.state.ShiftTimes(-suspension)
	}
	return r.Now
}

// limitWake returns the earlier of wakeAt and the time of the next check for a suspension. If
// wakeAt is zero, which means never, limitWake returns zero.
func limitWake(wakeAt, now time.Time) time.Time {
	if poll := now.Add(suspendPollInterval); wakeAt.After(poll) {
		return poll
	}
	return wakeAt
}
