package reconcile

import (
	"time"
)

// Go's monotonic clock and its timers stop while the host is suspended, but the clock that
// counts from the boot does not. The kubelet measures activeDeadlineSeconds by the wall
// clock, so suspended time counts there, too.
const (
	// suspendPoll is the longest time that a worker sleeps while it waits for a moment.
	// After the host resumes, the worker's timer is late by the suspended time.
	suspendPoll = time.Minute
	// minSuspend is the shortest suspension that is taken into account. A shorter one may
	// be the time between the readings of two clocks.
	minSuspend = time.Second
)

// now returns the time. If the host was suspended since the last call, it moves the times
// of the journals back by that duration.
func (w *worker) now() time.Time {
	r := w.journals.clock()
	if w.clock.Boot == "" {
		w.clock = r
		return r.Now
	}
	// A negative one corrects a reading that was delayed between the clocks.
	if slept := r.Up - w.clock.Up - r.Now.Sub(w.clock.Now); slept.Abs() >= minSuspend {
		w.clock = r
		w.moveMoments(-slept)
	}
	return r.Now
}

// moveMoments moves the times of the journals by d.
func (w *worker) moveMoments(d time.Duration) {
	move := func(_ string, t time.Time) time.Time { return t.Add(d) }
	h := &w.in.History
	present := journal{started: h.StartTime, Finished: h.Finished, Stopping: h.Stopping, Terminations: h.Terminations}
	present.eachMoment(move)
	h.StartTime, h.Finished, h.Stopping, h.Terminations = present.started, present.Finished, present.Stopping, present.Terminations
	for uid, j := range w.past {
		j.eachMoment(move)
		w.past = with(w.past, uid, j)
	}
}

// wakeBy returns the earlier of at and the next poll for a suspension; zero means never.
func wakeBy(at, now time.Time) time.Time {
	if poll := now.Add(suspendPoll); at.After(poll) {
		return poll
	}
	return at
}
