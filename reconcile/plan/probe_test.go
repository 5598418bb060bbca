package plan

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestProbeState_After checks that the result changes when the number of consecutive attempts
// reaches the threshold. Attempts that could not be made are not counted. The message changes only
// with the result.
func TestProbeState_After(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &v1.Probe{SuccessThreshold: rapid.Int32Range(1, 4).Draw(t, "successes"), FailureThreshold: rapid.Int32Range(1, 4).Draw(t, "failures")}
		outcomes := rapid.SliceOf(rapid.SampledFrom([]ProbeResult{{Passed: true}, {Message: "a"}, {Message: "b"}, {Errored: true, Message: "c"}})).Draw(t, "outcomes")
		var trial ProbeState
		var counted []bool
		for i, o := range outcomes {
			o.Began = time.Unix(int64(i), 0)
			was := trial
			if trial = trial.WithResult(p, o); !o.Errored {
				counted = append(counted, o.Passed)
			}
			want := was.Health
			if lastAre(counted, true, p.SuccessThreshold) {
				want = ProbePassed
			} else if lastAre(counted, false, p.FailureThreshold) {
				want = ProbeFailed
			}
			switch {
			case trial.Health != want:
				t.Fatalf("after attempts %v: got health %q, want %q", outcomes[:i+1], trial.Health, want)
			case trial.Began != o.Began:
				t.Fatalf("start time of the last attempt: got %s, want %s", trial.Began, o.Began)
			case was.Health == trial.Health && was.Message != "" && was.Message != trial.Message:
				t.Fatalf("after attempts %v, which do not change the health: got message %q, want the previous message %q", outcomes[:i+1], trial.Message, was.Message)
			case (trial.Health == ProbePassed) != (trial.Message == "") && trial.Health != "":
				t.Fatalf("after attempts %v: got health %s with message %q, want a message exactly if the probe has failed", outcomes[:i+1], trial.Health, trial.Message)
			}
		}
	})
}

// lastAre reports whether the last n elements of a list are all equal to want.
func lastAre(all []bool, want bool, n int32) bool {
	if len(all) < int(n) {
		return false
	}
	for _, is := range all[len(all)-int(n):] {
		if is != want {
			return false
		}
	}
	return true
}

// TestSpread checks that first attempts on containers of an earlier podd are spread over one
// period.
func TestSpread(t *testing.T) {
	const period = 10 * time.Second
	tenths := map[time.Duration]int{}
	for i := range 1000 {
		id := time.Duration(i).String()
		at := firstAttemptDelay(id, LivenessProbe, period)
		if at < 0 || at >= period || at != firstAttemptDelay(id, LivenessProbe, period) {
			t.Fatalf("container %s: first call: got delay %s; second call: got delay %s; want the same delay, from 0 to below %s", id, at, firstAttemptDelay(id, LivenessProbe, period), period)
		}
		tenths[at/time.Second]++
	}
	for tenth, n := range tenths {
		if n < 50 || n > 200 || len(tenths) != 10 {
			t.Errorf("second %d of the period: got %d of 1000 attempts, want about 100", tenth, n)
		}
	}
}
