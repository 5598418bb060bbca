package cri

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// wait returns when a mark is due, or with true when the next relist is due.
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

// runPass makes one pass and schedules the next one.
func (o *Observer) runPass(ctx context.Context, byTimer bool, emit func(runtime.Snapshot)) {
	marked := o.marks.take(byTimer)
	withEvents := marked
	marked.whole = marked.whole || byTimer
	before := o.pods
	snapshot, err := o.pass(ctx, marked)
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
	if snapshot.Whole {
		o.settle.Store(int64(afterPass(time.Since(snapshot.AsOf))))
	}
	o.scheduleRelist(time.Now(), byTimer && o.changedUnmarked(withEvents, before), snapshot.Whole)
	emit(snapshot)
}

// changedUnmarked reports whether a pod changed that was marked neither when the last pass
// began nor during it.
func (o *Observer) changedUnmarked(marked dirty, before map[types.NamespacedName]*runtime.Pod) bool {
	since := o.marks.peek()
	if marked.whole || since.whole {
		return false
	}
	differs := func(from, to map[types.NamespacedName]*runtime.Pod) bool {
		for key, pod := range from {
			_, first := marked.keys[key]
			_, then := since.keys[key]
			if !first && !then && to[key] != pod {
				return true
			}
		}
		return false
	}
	return differs(before, o.pods) || differs(o.pods, before)
}

// scheduleRelist schedules the next relist. lostEvents reports that a relist by the timer
// found a change without an event.
func (o *Observer) scheduleRelist(now time.Time, lostEvents, whole bool) {
	served := o.stream.served(now)
	switch {
	// A new stream does not count as served yet, so changes between the relist that it
	// caused and its start are found soon.
	case !served, lostEvents:
		o.period = o.opts.MinRelistInterval
	case whole:
		o.period = min(2*o.period, o.opts.MaxRelistInterval)
	}
	if next := now.Add(o.period); whole || next.Before(o.relistAt) {
		o.relistAt = next
	}
}

// report updates Health and logs once when the runtime becomes unreachable or reachable.
func (o *Observer) report(s runtime.Snapshot, err error) {
	h := o.Health()
	switch {
	case err != nil && h.Err == nil:
		o.opts.Logger.Warn("container runtime unreachable; trying again", "endpoint", o.client.endpoint, "err", err)
	case err == nil && h.Err != nil:
		o.opts.Logger.Info("container runtime reachable again", "endpoint", o.client.endpoint)
	}
	h.Err = err
	if err == nil && s.Whole {
		h.LastRelist = s.AsOf
		if o.opts.OnRelist != nil {
			o.opts.OnRelist(s.AsOf, time.Since(s.AsOf))
		}
	}
	h.Events = o.stream.served(time.Now())
	o.health.Store(&h)
}

// rest pauses for as long as the last pass took, so that many events cost at most half of
// the time of one core.
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

// afterPass returns the delay of the next pass after changes that podd probably made
// itself. took is the duration of the last whole pass. In a burst every pass is a whole
// one, and its cost grows with the number of pods, so passes may take at most one fiftieth of
// the time.
func afterPass(took time.Duration) time.Duration { return min(50*took, 10*time.Second) }

// backOff returns first, doubled n-1 times, but at most limit.
func backOff(n int, first, limit time.Duration) time.Duration {
	for ; n > 1 && first < limit; n-- {
		first *= 2
	}
	return min(first, limit)
}
