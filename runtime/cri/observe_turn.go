package cri

import (
	"context"
	"time"

	"podd/runtime"
)

// wait returns when a mark is due, or, true, when the next relist is.
func (o *Observer) wait(ctx context.Context) (byTimer bool, err error) {
	for {
		until, marked := o.relistAt, false
		if due, ok := o.marks.due(); ok && due.Before(until) {
			until, marked = due, true
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-o.marks.wake:
			timer.Stop()
		case <-timer.C:
			return !marked, nil
		}
	}
}

// turn makes one pass and settles when the next one is due.
func (o *Observer) turn(ctx context.Context, byTimer bool, emit func(runtime.Snapshot)) {
	wanted := o.marks.take()
	wanted.whole = wanted.whole || byTimer
	snapshot, changed, err := o.pass(ctx, wanted)
	if ctx.Err() != nil {
		return
	}
	o.report(snapshot, err)
	if err != nil {
		o.failed++
		o.relistAt = time.Now().Add(backOff(o.failed, 100*time.Millisecond, time.Second))
		o.client.redial()
		return
	}
	o.failed = 0
	o.pace(time.Now(), byTimer && changed, snapshot.Whole)
	emit(snapshot)
}

// pace settles when the next relist is due. surprised says that a relist which
// nothing asked for found something: events are being lost.
func (o *Observer) pace(now time.Time, surprised, whole bool) {
	served := o.stream.served(now)
	switch {
	// A new stream is not served yet, so what happened between the relist that
	// it caused and its beginning is found soon.
	case !served, surprised:
		o.period = o.opts.Fast
	case whole:
		o.period = min(2*o.period, o.opts.Slow)
	}
	if served {
		o.client.events.Store(eventsServed)
	}
	if next := now.Add(o.period); whole || next.Before(o.relistAt) {
		o.relistAt = next
	}
	// Never at once: an answer that stays out must not make a busy loop.
	if again := later(o.askAt, now.Add(100*time.Millisecond)); len(o.unsure) > 0 && again.Before(o.relistAt) {
		o.relistAt = again
	}
}

// report keeps Health and says once when the runtime is lost or found.
func (o *Observer) report(s runtime.Snapshot, err error) {
	h := o.Health()
	switch {
	case err != nil && h.Err == nil:
		o.opts.Logger.Warn("runtime lost", "endpoint", o.client.endpoint, "err", err)
	case err == nil && h.Err != nil:
		o.opts.Logger.Info("runtime found", "endpoint", o.client.endpoint)
	}
	h.Err = err
	if err == nil && s.Whole {
		h.LastRelist = s.AsOf
		if o.opts.Looked != nil {
			o.opts.Looked(s.AsOf, time.Since(s.AsOf))
		}
	}
	h.Events = o.stream.served(time.Now())
	o.health.Store(&h)
}

// rest leaves the machine to others for as long as the last pass took, so that
// a storm of events costs at most half of one core's waiting.
func (o *Observer) rest(ctx context.Context, took time.Duration) error {
	timer := time.NewTimer(min(took, 100*time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// backOff is first, doubled n-1 times, at most limit.
func backOff(n int, first, limit time.Duration) time.Duration {
	for ; n > 1 && first < limit; n-- {
		first *= 2
	}
	return min(first, limit)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
