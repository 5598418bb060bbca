package effect

import (
	"slices"
	"time"
)

const (
	// limitStep is the factor between two limits that a limitTuner compares.
	limitStep = 1.5
	// A limitTuner adopts another limit if a pod then costs less than minGain times as much.
	minGain = 0.95
	// A trial ends early if a pod then costs more than maxLoss times as much.
	maxLoss = 1.1
	// sampleCount is the number of starts of each rank from which a cost is computed.
	sampleCount = 16
	// maxPause is the maximum number of measurements between two trials.
	maxPause = 31
	// A trial begins only while minWaiting starts wait. They are mostly sandboxes, each followed by a
	// container. Half of the pods are used for the trial, and the other half can start faster if it
	// succeeds. A trial in a smaller burst costs more than it gains.
	minWaiting = 2 * sampleCount
)

// A limitTuner finds the limit of a Gate with the highest throughput. The best limit depends on the
// runtime, the disk and other load. The limitTuner measures the cost of a pod at the current limit,
// and then tries the next higher or lower limit. It keeps the new limit if a pod costs at least 5 %
// less. The longer no trial succeeds, the rarer the trials become. In a small burst of starts, the
// limitTuner tries no other limit.
//
// The cost is the time for which a pod occupies the runtime: the sum of the average durations of a
// sandbox and of a container, without the shortest and the longest quarter, divided by the number of
// starts in progress. If a higher limit only makes the starts wait longer for each other, the cost
// does not change. The first starts of a burst are not measured, because they take longer.
//
// A limitTuner is not safe for concurrent use. It reads no clock.
type limitTuner struct {
	lowest, highest int

	limit        int // the current limit; differs from best during a trial
	best         int // the best limit so far
	bestCost     time.Duration
	triesHigher  bool           // the next trial tries a higher limit
	failedTrials int            // number of trials that failed since the last change of best
	pause        int            // number of measurements before the next trial
	skip         [rankCount]int // number of starts still to be skipped at the beginning of a burst
	samples      [rankCount][]time.Duration
}

// newLimitTuner returns a limitTuner with the first limit start. Its limit never becomes less than
// lowest or more than highest.
func newLimitTuner(lowest, start, highest int) *limitTuner {
	t := &limitTuner{lowest: lowest, highest: highest, limit: start, best: start, triesHigher: true}
	t.endBurst()
	return t
}

// endBurst ends a trial and discards all durations. It must be called when no start waits, because the
// next starts belong to another burst.
func (t *limitTuner) endBurst() {
	t.limit, t.samples = t.best, [rankCount][]time.Duration{}
	for r := range t.skip {
		t.skip[r] = t.best
	}
}

// add adds the duration of a start. All starts that are added must have begun at the current limit,
// while as many starts as the limit permits were in progress. waiting is the number of starts of all
// ranks that wait for a slot. add may change the limit.
func (t *limitTuner) add(r rank, d time.Duration, waiting int) {
	if t.skip[r] > 0 {
		t.skip[r]--
		return
	}
	t.samples[r] = append(t.samples[r], d)
	t.samples[r] = t.samples[r][max(0, len(t.samples[r])-sampleCount):] // keep the newest
	count := sampleCount
	for _, s := range t.samples {
		count = min(count, len(s))
	}
	isTrial := t.limit != t.best
	if count < sampleCount && !(isTrial && count >= sampleCount/2) {
		return
	}
	cost := t.cost()
	if count == sampleCount || float64(cost) > maxLoss*float64(t.bestCost) {
		t.samples = [rankCount][]time.Duration{}
		t.applyCost(cost, waiting)
	}
}

// cost returns the cost of a pod at the current limit; see limitTuner.
func (t *limitTuner) cost() (sum time.Duration) {
	for _, s := range t.samples {
		sum += middleMean(s)
	}
	return sum / time.Duration(t.limit)
}

// middleMean returns the mean of the durations without the lowest and the highest quarter. d must not
// be empty.
func middleMean(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	d = d[len(d)/4 : len(d)-len(d)/4]
	var sum float64
	for _, x := range d {
		sum += float64(x)
	}
	return time.Duration(sum / float64(len(d)))
}

// applyCost ends a trial. If no trial is in progress, applyCost begins a trial, unless the tuner
// pauses or too few starts wait. cost is the cost of a pod at the current limit.
func (t *limitTuner) applyCost(cost time.Duration, waiting int) {
	switch {
	case t.limit == t.best:
		t.bestCost = cost
		if t.pause > 0 {
			t.pause--
			return
		}
	case float64(cost) < minGain*float64(t.bestCost):
		t.best, t.bestCost, t.failedTrials = t.limit, cost, 0
	default:
		t.triesHigher = !t.triesHigher
		t.failedTrials++
		if t.failedTrials%2 == 0 { // trials in both directions have failed
			t.pause = min(4<<min(t.failedTrials/2, 8)-1, maxPause)
		}
		t.limit = t.best
		return
	}
	if waiting >= minWaiting {
		t.limit = t.nextTrial()
	}
}

// nextTrial returns the limit of the next trial. If t.lowest equals t.highest, it returns t.best.
func (t *limitTuner) nextTrial() int {
	if t.triesHigher && t.best == t.highest || !t.triesHigher && t.best == t.lowest {
		t.triesHigher = !t.triesHigher
	}
	if t.triesHigher {
		return min(max(int(float64(t.best)*limitStep), t.best+1), t.highest)
	}
	return max(min(int(float64(t.best)/limitStep), t.best-1), t.lowest)
}
