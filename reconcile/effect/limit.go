package effect

import (
	"slices"
	"time"
)

const (
	// limitStep is the factor between two limits that a limitTuner compares.
	limitStep = 1.5
	// A limitTuner changes the limit if a pod then costs less than minGain times as much.
	minGain = 0.95
	// A trial ends early if a pod costs more than maxLoss times as much.
	maxLoss = 1.1
	// minSamples is the minimum number of starts of each rank from which a cost is computed.
	minSamples = 8
	// maxPause is the maximum number of measurements between two trials.
	maxPause = 31
	// A trial begins only while minWaitingFactor times as many starts wait as the trial needs. Half of
	// them are used for the trial, and the other half can start faster if it succeeds. A trial
	// in a smaller burst costs more than it gains.
	minWaitingFactor = 2
)

// A limitTuner finds the limit of a Gate with the highest throughput, because the best limit
// depends on the runtime, the disk and other load. It measures the cost of a pod at the present
// limit, and then tries the next lower or higher limit. It keeps the new limit if a pod costs at
// least 5 % less. While no trial succeeds, the trials become rarer. In a small burst of starts it
// tries no other limit.
//
// The cost is the time for which a pod occupies the runtime: the median durations of a sandbox and
// of a container, divided by the number of starts in progress. If starts only wait longer for each
// other at a higher limit, the cost stays equal.
//
// A limitTuner is not safe for concurrent use. It reads no clock.
type limitTuner struct {
	lowest, highest int

	limit       int // the present limit; not equal to best during a trial
	best        int // the best limit so far
	bestCost    time.Duration
	triesHigher bool // the next trial tries a higher limit
	failed      int  // number of trials that failed since the last change of best
	pause       int  // number of measurements before the next trial
	samples     [rankCount][]time.Duration
}

// newLimitTuner returns a limitTuner whose first limit is start. Its limit never becomes less than
// lowest or more than highest.
func newLimitTuner(lowest, start, highest int) *limitTuner {
	return &limitTuner{lowest: lowest, highest: highest, limit: start, best: start}
}

// add adds the duration of a start. All starts that are added must have begun at the present limit,
// and as many starts as the limit permits must have been in progress. waiting is the number of
// starts of all ranks that wait for a slot. add may change the limit.
func (t *limitTuner) add(r rank, d time.Duration, waiting int) {
	need := t.samplesOfRank()
	t.samples[r] = append(t.samples[r], d)
	t.samples[r] = t.samples[r][max(0, len(t.samples[r])-need):] // keep the newest
	count := need
	for _, s := range t.samples {
		count = min(count, len(s))
	}
	if count < need/2 {
		return
	}
	cost := t.cost()
	if count == need || t.limit != t.best && float64(cost) > maxLoss*float64(t.bestCost) {
		t.samples = [rankCount][]time.Duration{}
		t.applyCost(cost, waiting)
	}
}

// samplesOfRank returns the number of starts of each rank from which a cost is computed.
func (t *limitTuner) samplesOfRank() int { return max(minSamples, t.limit) }

// cost returns the cost of a pod at the present limit; see limitTuner.
func (t *limitTuner) cost() (sum time.Duration) {
	for _, s := range t.samples {
		s = slices.Sorted(slices.Values(s))
		sum += s[len(s)/2]
	}
	return sum / time.Duration(t.limit)
}

// applyCost ends a trial, or begins one unless the tuner pauses or too few starts wait. cost is the
// cost of a pod at the present limit.
func (t *limitTuner) applyCost(cost time.Duration, waiting int) {
	switch {
	case t.limit == t.best:
		t.bestCost = cost
		if t.pause > 0 {
			t.pause--
			return
		}
	case float64(cost) < minGain*float64(t.bestCost):
		t.best, t.bestCost, t.failed = t.limit, cost, 0
	default:
		t.triesHigher = !t.triesHigher
		t.failed++
		if t.failed%2 == 0 { // a trial has failed in both directions
			t.pause = min(2<<(t.failed/2)-1, maxPause)
		}
		t.limit = t.best
		return
	}
	if waiting >= minWaitingFactor*int(rankCount)*t.samplesOfRank() {
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
