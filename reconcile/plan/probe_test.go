package plan

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestTrial: a verdict is that of the last attempts, as many as its threshold
// asks, whatever could not be made between them; it is never taken back without
// the other, and what is said of it stands still.
func TestTrial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &v1.Probe{SuccessThreshold: rapid.Int32Range(1, 4).Draw(t, "successes"), FailureThreshold: rapid.Int32Range(1, 4).Draw(t, "failures")}
		outcomes := rapid.SliceOf(rapid.SampledFrom([]Outcome{{Passed: true}, {Message: "a"}, {Message: "b"}, {Errored: true, Message: "c"}})).Draw(t, "outcomes")
		var trial Trial
		var counted []bool
		for i, o := range outcomes {
			o.Began = time.Unix(int64(i), 0)
			was := trial
			if trial = trial.After(p, o); !o.Errored {
				counted = append(counted, o.Passed)
			}
			want := was.Health
			if lastAre(counted, true, p.SuccessThreshold) {
				want = Passed
			} else if lastAre(counted, false, p.FailureThreshold) {
				want = Failed
			}
			switch {
			case trial.Health != want:
				t.Fatalf("after %v: %q, want %q", outcomes[:i+1], trial.Health, want)
			case trial.Began != o.Began:
				t.Fatalf("began %s", trial.Began)
			case was.Health == trial.Health && was.Message != "" && was.Message != trial.Message:
				t.Fatalf("after %v: says %q, no longer %q", outcomes[:i+1], trial.Message, was.Message)
			case (trial.Health == Passed) != (trial.Message == "") && trial.Health != "":
				t.Fatalf("after %v: %s, says %q", outcomes[:i+1], trial.Health, trial.Message)
			}
		}
	})
}

// lastAre tells whether the last n are all so.
func lastAre(all []bool, so bool, n int32) bool {
	if len(all) < int(n) {
		return false
	}
	for _, is := range all[len(all)-int(n):] {
		if is != so {
			return false
		}
	}
	return true
}

// TestSpread: first attempts on what an earlier podd left lie within one period,
// and those of many containers all over it.
func TestSpread(t *testing.T) {
	const period = 10 * time.Second
	tenths := map[time.Duration]int{}
	for i := range 1000 {
		id := time.Duration(i).String()
		at := spread(id, Liveness, period)
		if at < 0 || at >= period || at != spread(id, Liveness, period) {
			t.Fatalf("%s: %s", id, at)
		}
		tenths[at/time.Second]++
	}
	for tenth, n := range tenths {
		if n < 50 || n > 200 || len(tenths) != 10 {
			t.Errorf("%d of 1000 in second %d", n, tenth)
		}
	}
}
