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
		if got := backoff(test.n, test.limit); got != test.want {
			t.Errorf("after %d crashes, at most %s: %s, want %s", test.n, test.limit, got, test.want)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	const s = time.Second
	for n, want := range []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s} {
		if got := RetryDelay(n); got != want {
			t.Errorf("after %d failures: %s, want %s", n, got, want)
		}
	}
}

// TestCrashes: what a container's end adds to. The step it was started at is
// what its own start followed.
func TestCrashes(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		step string
		ran  time.Duration
		want int
	}{
		"the first start":         {"0", time.Second, 0},
		"no annotation":           {"", time.Second, 0},
		"garbage":                 {"many", time.Second, 0},
		"negative":                {"-3", time.Second, 0},
		"the fourth":              {"4", time.Second, 4},
		"just too short":          {"4", 10*time.Minute - 1, 4},
		"long enough":             {"4", 10 * time.Minute, 0},
		"ended before it began":   {"4", -years, 4},
		"a clock that jumped far": {"4", years, 0},
	}
	for name, test := range tests {
		c := &runtime.Container{StartedAt: began, FinishedAt: began.Add(test.ran), Annotations: map[string]string{runtime.AnnotationBackoff: test.step}}
		if got := crashes(c); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := crashes(&runtime.Container{FinishedAt: began, Annotations: map[string]string{runtime.AnnotationBackoff: "4"}}); got != 4 {
		t.Errorf("never started: %d, want 4", got)
	}
}

// TestRestartAt: when an ended container may start again, by the moment its end
// was first seen. A clock that jumps can shorten the wait, never lengthen it.
func TestRestartAt(t *testing.T) {
	seen := time.Now()
	tests := map[string]struct {
		step     string
		finished time.Duration // of the end, from when it was seen, by the wall clock
		want     time.Duration // the wait, from when it was seen
	}{
		"at once the first time":     {"0", 0, 0},
		"seen as it ended":           {"1", 0, 10 * time.Second},
		"seen later":                 {"2", -5 * time.Second, 15 * time.Second},
		"seen when it was over":      {"1", -time.Minute, 0},
		"ended in the future":        {"1", time.Hour, 10 * time.Second},
		"ended ten years in it":      {"6", years, 5 * time.Minute},
		"ended ten years ago":        {"6", -years, 0},
		"the last step, seen midway": {"9", -2 * time.Minute, 3 * time.Minute},
	}
	for name, test := range tests {
		end := seen.Round(0).Add(test.finished)
		c := &runtime.Container{StartedAt: end.Add(-time.Second), FinishedAt: end, Annotations: map[string]string{runtime.AnnotationBackoff: test.step}}
		if got := restartAt(c, seen, 0).Sub(seen); got != test.want {
			t.Errorf("%s: waits %s, want %s", name, got, test.want)
		}
	}
	// An end without a time, of a record that a runtime lost half of.
	c := &runtime.Container{Annotations: map[string]string{runtime.AnnotationBackoff: "3"}}
	if got := restartAt(c, seen, 0).Sub(seen); got < 0 || got > 40*time.Second {
		t.Errorf("waits %s without a time of its end", got)
	}
}
