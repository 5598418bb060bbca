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
	// minSamples is the minimum number of starts of each rank from which a cost is computed.
	minSamples = 8
	// maxPause is the maximum number of measurements between two trials.
	maxPause = 31
	// A trial begins only while minWaitingFactor times as many starts wait as the trial needs. Half of
	// them are used for the trial, and the other half can start faster if it succeeds. A trial
	// in a smaller burst costs more than it gains.
	minWaitingFactor = 2
)

// A limitTuner finds the limit of a Gate with the highest throughput. The best limit depends on the
// runtime, the disk and other load. The limitTuner measures the cost of a pod at the current limit,
// and then tries the next lower or higher limit. It keeps the new limit if a pod costs at least 5 %
// less. The longer no trial succeeds, the rarer the trials become. In a small burst of starts, the
// limitTuner tries no other limit.
//
// The cost is the time for which a pod occupies the runtime: the sum of the median durations of a
// sandbox and of a container, divided by the number of starts in progress. If a higher limit only
// makes the starts wait longer for each other, the cost does not change.
//
// A limitTuner is not safe for concurrent use. It reads no clock.
type limitTuner struct {
	lowest, highest int

	limit        int // the current limit; differs from best during a trial
	best         int // the best limit so far
	bestCost     time.Duration
	triesHigher  bool // the next trial tries a higher limit
	failedTrials int  // number of trials that failed since the last change of best
	pause        int  // number of measurements before the next trial
	samples      [rankCount][]time.Duration
}

// newLimitTuner returns a limitTuner with the first limit start. Its limit never becomes less than
// lowest or more than highest.
func newLimitTuner(lowest, start, highest int) *limitTuner {
	return &limitTuner{lowest: lowest, highest: highest, limit: start, best: start}
}

// add adds the duration of a start. All starts that are added must have begun at the current limit,
// while as many starts as the limit permits were in progress. waiting is the number of starts of all
// ranks that wait for a slot. add may change the limit.
func (t *limitTuner) add(r rank, d time.Duration, waiting int) {
	neededSamples := t.samplesOfRank()
	t.samples[r] = append(t.samples[r], d)
	t.samples[r] = t.samples[r][max(0, len(t.samples[r])-neededSamples):] // keep the newest
	count := neededSamples
	for _, s := range t.samples {
		count = min(count, len(s))
	}
	if count < neededSamples/2 {
		return
	}
	cost := t.cost()
	if count == neededSamples || t.limit != t.best && float64(cost) > maxLoss*float64(t.bestCost) {
		t.samples = [rankCount][]time.Duration{}
		t.applyCost(cost, waiting)
	}
}

// samplesOfRank returns the number of starts of each rank from which a cost is computed.
func (t *limitTuner) samplesOfRank() int { return max(minSamples, t.limit) }

// cost returns the cost of a pod at the current limit; see limitTuner.
func (t *limitTuner) cost() (sum time.Duration) {
	for _, s := range t.samples {
		s = slices.Sorted(slices.Values(s))
		sum += s[len(s)/2]
	}
	return sum / time.Duration(t.limit)
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
			t.pause = min(2<<(t.failedTrials/2)-1, maxPause)
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
