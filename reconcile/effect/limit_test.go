package effect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A runtimeModel is a model of a runtime. Up to capacity, concurrent starts do not slow each other
// down. More starts share the capacity. Each start above capacity also makes all starts slower, by
// the fraction thrash.
type runtimeModel struct {
	capacity, thrash float64
}

// latency returns the duration of a start while n starts are in progress. A sandbox takes three
// times as long as a container.
func (m runtimeModel) latency(r rank, n int) time.Duration {
	alone := 0.02
	if r == sandboxRank {
		alone = 0.06
	}
	excess := max(float64(n)-m.capacity, 0)
	return time.Duration(alone * max(1, float64(n)/m.capacity) * (1 + m.thrash*excess) * float64(time.Second))
}

// throughput returns the number of pods that start in a second if limit starts are in progress.
func (m runtimeModel) throughput(limit int) float64 {
	return float64(limit) / (m.latency(sandboxRank, limit) + m.latency(containerRank, limit)).Seconds()
}

// largeBurst is a number of waiting starts with which a limitTuner tries every limit.
const largeBurst = 1000

// TestLimitTuner checks that the tuner finds a limit with nearly the highest throughput, although
// the durations vary by a fifth.
func TestLimitTuner(t *testing.T) {
	for name, test := range map[string]struct {
		runtimeModel
		start     int
		wantShare float64 // of the highest throughput
	}{
		"two CPUs":                      {runtimeModel{3, 0}, 8, 0.95},
		"each further start costs":      {runtimeModel{3, 0.05}, 8, 0.95},
		"waits for the disk":            {runtimeModel{20, 0}, 8, 0.95},
		"one at a time":                 {runtimeModel{1, 0.3}, 4, 0.95},
		"one CPU":                       {runtimeModel{1.5, 0}, 4, 0.95},
		"best far above":                {runtimeModel{30, 0.01}, 4, 0.93}, // 30 is between 28 and 32, which the tuner compares
		"the start is already the best": {runtimeModel{8, 0.1}, 8, 0.95},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		tuner := newLimitTuner(1, test.start, 32)
		var pods, seconds float64
		for range 600 {
			for r := range rankCount {
				d := test.latency(r, tuner.limit)
				seconds += d.Seconds() / float64(tuner.limit)
				tuner.add(r, time.Duration(float64(d)*(0.9+0.2*random.Float64())), largeBurst)
			}
			pods++
		}
		best, bestAt := 0.0, 0
		for limit := 1; limit <= 32; limit++ {
			if x := test.throughput(limit); x > best {
				best, bestAt = x, limit
			}
		}
		if got := test.throughput(tuner.best); got < test.wantShare*best {
			t.Errorf("%s: got the limit %d with %.1f pods/s, want at least %.2f of %.1f pods/s at %d", name, tuner.best, got, test.wantShare, best, bestAt)
		}
		if got := pods / seconds; test.throughput(test.start) >= 0.95*best && got < 0.95*best {
			t.Errorf("%s: got %.1f pods/s including trials, want at least 95 %% of %.1f", name, got, best)
		}
	}
}

// TestLimitTuner_Bursts checks that trials do not slow down bursts on a runtime for which the first limit
// is right. As on real nodes, the durations vary by a quarter, the first starts of a burst take longer,
// and starts become slower the more pods run.
func TestLimitTuner_Bursts(t *testing.T) {
	const nodes, bursts, burstSize, start = 100, 5, 100, 8
	m := runtimeModel{7, 0.02}
	random := rand.New(rand.NewPCG(1, 2))
	var seconds, bestSeconds float64
	lastLimits := map[int]int{}
	for range nodes {
		tuner := newLimitTuner(1, start, 64)
		for range bursts {
			for pod := range burstSize {
				slowdown := 1 + 0.3*float64(pod)/burstSize
				if pod < start {
					slowdown *= 1.3
				}
				for r := range rankCount {
					d := m.latency(r, tuner.limit).Seconds() * slowdown
					seconds += d / float64(tuner.limit)
					bestSeconds += m.latency(r, start).Seconds() * slowdown / start
					tuner.add(r, time.Duration(d*max(0.2, 1+0.25*random.NormFloat64())*float64(time.Second)), burstSize-pod)
				}
			}
			tuner.endBurst()
		}
		lastLimits[tuner.best]++
	}
	if got := seconds / bestSeconds; got > 1.02 {
		t.Errorf("got %.3f times the duration of bursts with the first limit, want at most 1.02; nodes by their last limit: %v", got, lastLimits)
	}
	if lastLimits[start] < nodes*8/10 {
		t.Errorf("nodes by their last limit: got %v, want at least 80 %% at %d", lastLimits, start)
	}
}

// TestLimitTuner_FirstTrial checks in which bursts a first trial begins.
func TestLimitTuner_FirstTrial(t *testing.T) {
	for _, test := range []struct {
		start, burst int
		want         bool
	}{
		{8, 20, false}, {8, 50, false}, {8, 100, true}, {16, 60, false}, {16, 100, true}, {32, 60, false}, {32, 300, true}, {64, 300, true},
	} {
		tuner := newLimitTuner(1, test.start, 128)
		hasTrial := false
		for pod := range test.burst {
			for r := range rankCount {
				tuner.add(r, time.Second, max(0, test.burst-test.start-pod))
				hasTrial = hasTrial || tuner.limit != tuner.best
			}
		}
		if hasTrial != test.want {
			t.Errorf("burst of %d with the limit %d: got a trial %t, want %t", test.burst, test.start, hasTrial, test.want)
		}
	}
}

// TestLimitTuner_Changes checks that the tuner follows a runtime that becomes slower at high limits.
func TestLimitTuner_Changes(t *testing.T) {
	tuner := newLimitTuner(1, 8, 32)
	run := func(m runtimeModel) {
		for range 2000 {
			for r := range rankCount {
				tuner.add(r, m.latency(r, tuner.limit), largeBurst)
			}
		}
	}
	run(runtimeModel{20, 0.2})
	if tuner.best < 16 || tuner.best > 24 {
		t.Errorf("got the limit %d for a runtime that starts 20 at a time, want about 20", tuner.best)
	}
	run(runtimeModel{2, 0.2})
	if tuner.best > 3 {
		t.Errorf("got the limit %d for a runtime that starts 2 at a time, want about 2", tuner.best)
	}
}

// TestLimitTuner_SmallBurst checks that the tuner keeps its limit in bursts that are too small for a
// trial, even if the burst follows many others.
func TestLimitTuner_SmallBurst(t *testing.T) {
	tuner := newLimitTuner(1, 8, 32)
	for range 100 {
		for waiting := 20; waiting > 0; waiting-- {
			for r := range rankCount {
				tuner.add(r, time.Second, waiting)
			}
			if tuner.limit != 8 {
				t.Fatalf("got a trial of the limit %d while %d starts wait, want the limit 8 to stay", tuner.limit, waiting)
			}
		}
	}
}

// TestLimitTuner_Property checks that the limit stays in its range, and that the tuner needs bounded
// memory, for all durations.
func TestLimitTuner_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lowest := rapid.IntRange(1, 4).Draw(t, "lowest")
		start := rapid.IntRange(lowest, 16).Draw(t, "start")
		highest := rapid.IntRange(start, 40).Draw(t, "highest")
		tuner := newLimitTuner(lowest, start, highest)
		for i := range rapid.IntRange(0, 400).Draw(t, "starts") {
			r := rank(rapid.IntRange(0, int(rankCount)-1).Draw(t, fmt.Sprint("rank ", i)))
			if rapid.IntRange(0, 49).Draw(t, "ends burst") == 0 {
				tuner.endBurst()
			}
			tuner.add(r, time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "duration")), rapid.IntRange(1, 100).Draw(t, "waiting"))
			if tuner.limit < lowest || tuner.limit > highest || tuner.best < lowest || tuner.best > highest {
				t.Fatalf("got the limit %d, best %d, want %d to %d", tuner.limit, tuner.best, lowest, highest)
			}
			for r, s := range tuner.samples {
				if len(s) > sampleCount {
					t.Fatalf("rank %d: got %d samples, want at most %d", r, len(s), sampleCount)
				}
			}
		}
	})
}
