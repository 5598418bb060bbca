package cri

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// wait waits until a mark or the next relist is due. isRelist reports whether the wait ended
// because the next relist is due.
func (o *Observer) wait(ctx context.Context) (isRelist bool, err error) {
	for {
		until, untilMark := o.relistAt, false
		if markAt, ok := o.marks.nextObservation(); ok && markAt.Before(until) {
			until, untilMark = markAt, true
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-o.marks.wake:
			timer.Stop()
		case <-timer.C:
			return !untilMark, nil
		}
	}
}

// runPass makes one pass, emits its snapshot and schedules the next relist.
func (o *Observer) runPass(ctx context.Context, isRelist bool, emit func(runtime.Snapshot)) {
	marks := o.marks.take(isRelist)
	marksBefore := marks
	marks.allPods = marks.allPods || isRelist
	previousPods := o.pods
	snapshot, err := o.observeMarked(ctx, marks)
	if ctx.Err() != nil {
		return
	}
	o.updateHealth(snapshot, err)
	if err != nil {
		o.failedPasses++
		o.relistAt = time.Now().Add(backOff(o.failedPasses, 100*time.Millisecond, time.Second))
		o.client.redial()
		return
	}
	o.failedPasses = 0
	if snapshot.IsComplete {
		o.settleDelay.Store(int64(settleDelay(time.Since(snapshot.AsOf))))
	}
	o.scheduleRelist(time.Now(), isRelist && o.hasUnmarkedChange(marksBefore, previousPods), snapshot.IsComplete)
	emit(snapshot)
}

// hasUnmarkedChange reports whether the last pass found a change in a pod that was marked neither
// before nor during the pass. In this case the runtime has sent no event for the change.
// marksBefore contains the marks from before the pass, and previousPods contains the pods as they
// were before the pass.
func (o *Observer) hasUnmarkedChange(marksBefore markedPods, previousPods map[types.NamespacedName]*runtime.Pod) bool {
	marksSince := o.marks.peek()
	if marksBefore.allPods || marksSince.allPods {
		return false
	}
	differs := func(from, to map[types.NamespacedName]*runtime.Pod) bool {
		for key, pod := range from {
			_, wasMarked := marksBefore.keys[key]
			_, isMarked := marksSince.keys[key]
			if !wasMarked && !isMarked && to[key] != pod {
				return true
			}
		}
		return false
	}
	return differs(previousPods, o.pods) || differs(o.pods, previousPods)
}

// scheduleRelist schedules the next relist. hasLostEvents means that a periodic relist found a
// change for which the runtime sent no event. allPods means that the last pass observed all pods.
func (o *Observer) scheduleRelist(now time.Time, hasLostEvents, allPods bool) {
	isReliable := o.stream.isReliable(now)
	switch {
	// The runtime may send no events for the changes between the relist after a subscription and
	// the first event. The short interval finds these changes.
	case !isReliable, hasLostEvents:
		o.relistInterval = o.opts.MinRelistInterval
	case allPods:
		o.relistInterval = min(2*o.relistInterval, o.opts.MaxRelistInterval)
	}
	if next := now.Add(o.relistInterval); allPods || next.Before(o.relistAt) {
		o.relistAt = next
	}
}

// updateHealth updates Health and logs once when the runtime becomes unreachable or reachable.
func (o *Observer) updateHealth(s runtime.Snapshot, err error) {
	h := o.Health()
	switch {
	case err != nil && h.Err == nil:
		o.opts.Logger.Warn("container runtime unreachable; trying again", "endpoint", o.client.endpoint, "err", err)
	case err == nil && h.Err != nil:
		o.opts.Logger.Info("container runtime reachable again", "endpoint", o.client.endpoint)
	}
	h.Err = err
	if err == nil {
		o.recordPass(s)
	}
	if err == nil && s.IsComplete {
		h.LastRelist = s.AsOf
	}
	h.HasEvents = o.stream.isReliable(time.Now())
	o.health.Store(&h)
}

// recordPass calls OnRelist or OnPodRelist after a successful pass.
func (o *Observer) recordPass(s runtime.Snapshot) {
	duration := time.Since(s.AsOf)
	switch {
	case s.IsComplete && o.opts.OnRelist != nil:
		o.opts.OnRelist(s.AsOf, duration)
	case !s.IsComplete && o.opts.OnPodRelist != nil:
		o.opts.OnPodRelist(duration)
	}
}

// pauseAfterPass pauses for as long as the last pass took, but at most 100 ms. Therefore, passes
// that take up to 100 ms use at most half of the time.
func (o *Observer) pauseAfterPass(ctx context.Context, passDuration time.Duration) error {
	timer := time.NewTimer(min(passDuration, 100*time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// settleDelay returns how long to wait for further changes before the next pass, if podd probably
// made the changes itself. passDuration is the duration of the last pass over all pods. During a
// burst of changes, every pass observes all pods, and its cost grows with their number. With this
// delay, passes use at most one fiftieth of the time.
func settleDelay(passDuration time.Duration) time.Duration {
	return min(50*passDuration, 10*time.Second)
}

// backOff returns the delay after n failures. After one failure, the delay is equal to firstDelay.
// It doubles with each further failure up to limit.
func backOff(n int, firstDelay, limit time.Duration) time.Duration {
	for ; n > 1 && firstDelay < limit; n-- {
		firstDelay *= 2
	}
	return min(firstDelay, limit)
}
