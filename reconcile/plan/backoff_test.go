package plan

import (
	"testing"
	"time"

	"podd/runtime"
)

func TestBackoff(t *testing.T) {
	const s = time.Second
	tests := []struct {
		n     int
		limit time.Duration
		want  time.Duration
	}{
		{-1, 0, 0}, {0, 0, 0}, {1, 0, 10 * s}, {2, 0, 20 * s}, {3, 0, 40 * s}, {4, 0, 80 * s}, {5, 0, 160 * s},
		{6, 0, 300 * s}, {7, 0, 300 * s}, {1 << 30, 0, 300 * s},
		{1, 5 * s, 5 * s}, {1, 30 * s, 10 * s}, {3, 30 * s, 30 * s}, {9, s, s}, {2, -s, 20 * s},
	}
	for _, test := range tests {
		if got := backoffDelay(test.n, test.limit); got != test.want {
			t.Errorf("after %d crashes with limit %s: got %s, want %s", test.n, test.limit, got, test.want)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	const s = time.Second
	for n, want := range []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s} {
		if got := RetryDelay(n); got != want {
			t.Errorf("after %d failures: got %s, want %s", n, got, want)
		}
	}
}

// TestCrashes checks the number of crashes that preceded the start of a container. The start
// recorded this number as its back-off step. A container that ran long enough starts again at 0.
func TestCrashes(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		step string
		ran  time.Duration
		want int
	}{
		"first start":                           {"0", time.Second, 0},
		"no annotation":                         {"", time.Second, 0},
		"annotation is not a number":            {"many", time.Second, 0},
		"annotation is negative":                {"-3", time.Second, 0},
		"fourth restart":                        {"4", time.Second, 4},
		"ran not quite long enough":             {"4", 10*time.Minute - 1, 4},
		"ran long enough":                       {"4", 10 * time.Minute, 0},
		"exited before its start, by the clock": {"4", -years, 4},
		"clock jumped during the run":           {"4", years, 0},
	}
	for name, test := range tests {
		c := &runtime.Container{StartedAt: began, FinishedAt: began.Add(test.ran), Annotations: map[string]string{runtime.AnnotationBackoffStep: test.step}}
		if got := crashesBeforeStart(c); got != test.want {
			t.Errorf("%s: got %d crashes, want %d", name, got, test.want)
		}
	}
	if got := crashesBeforeStart(&runtime.Container{FinishedAt: began, Annotations: map[string]string{runtime.AnnotationBackoffStep: "4"}}); got != 4 {
		t.Errorf("container without a start time: got %d crashes, want 4", got)
	}
}

// TestRestartAt checks when an exited container may start again, relative to the first
// observation of its exit. A clock that jumps can shorten the wait, but never lengthen it.
func TestRestartAt(t *testing.T) {
	seen := time.Now()
	tests := map[string]struct {
		step     string
		finished time.Duration // time of the exit by the wall clock, relative to the observation
		want     time.Duration // wait after the observation
	}{
		"first restart":                         {"0", 0, 0},
		"observed at the exit":                  {"1", 0, 10 * time.Second},
		"observed later":                        {"2", -5 * time.Second, 15 * time.Second},
		"observed after the delay":              {"1", -time.Minute, 0},
		"exit in the future":                    {"1", time.Hour, 10 * time.Second},
		"exit ten years in the future":          {"6", years, 5 * time.Minute},
		"exit ten years ago":                    {"6", -years, 0},
		"longest delay, observed in the middle": {"9", -2 * time.Minute, 3 * time.Minute},
	}
	for name, test := range tests {
		end := seen.Round(0).Add(test.finished)
		c := &runtime.Container{StartedAt: end.Add(-time.Second), FinishedAt: end, Annotations: map[string]string{runtime.AnnotationBackoffStep: test.step}}
		if got := restartAt(c, seen, 0).Sub(seen); got != test.want {
			t.Errorf("%s: got a wait of %s, want %s", name, got, test.want)
		}
	}
	// The runtime may have lost the time of the exit.
	c := &runtime.Container{Annotations: map[string]string{runtime.AnnotationBackoffStep: "3"}}
	if got := restartAt(c, seen, 0).Sub(seen); got < 0 || got > 40*time.Second {
		t.Errorf("unknown time of the exit: got a wait of %s, want at most 40s", got)
	}
}
