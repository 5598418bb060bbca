package source

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPollInterval(t *testing.T) {
	const frequency = 20 * time.Second
	for _, c := range []struct {
		failures   int
		noResponse bool
		retryAfter time.Duration
		want       time.Duration
	}{
		{0, false, 0, 20 * time.Second},
		{1, false, 0, 20 * time.Second},
		{2, false, 0, 40 * time.Second},
		{5, false, 0, 320 * time.Second},
		{6, false, 0, maxRequestInterval},
		{1 << 40, false, 0, maxRequestInterval},
		{1, true, 0, time.Second},
		{4, true, 0, 8 * time.Second},
		{99, true, 0, maxRequestInterval},
		{1, false, 5 * time.Minute, 5 * time.Minute},
		{9, false, time.Second, maxRequestInterval},
	} {
		p := pollInterval{frequency, func() float64 { return 0.5 }}
		if got := p.nextWait(c.failures, c.noResponse, c.retryAfter); got != c.want {
			t.Errorf("wait after %d failures, no response %v, Retry-After %v: got %v, want %v", c.failures, c.noResponse, c.retryAfter, got, c.want)
		}
	}
}

// TestPollInterval_Property checks that a wait is never shorter than Retry-After. A wait must also not
// be longer than the longest of maxRequestInterval, the configured frequency and Retry-After.
func TestPollInterval_Property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		frequency := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "frequency"))
		after := time.Duration(rapid.Int64Range(0, int64(maxRequestInterval)).Draw(rt, "after"))
		p := pollInterval{frequency, func() float64 { return rapid.Float64Range(0, 0.999).Draw(rt, "random") }}
		got := p.nextWait(rapid.IntRange(0, 100).Draw(rt, "failures"), rapid.Bool().Draw(rt, "no response"), after)
		if got < after || got <= 0 && frequency > 10 || got > max(maxRequestInterval, frequency, after) {
			rt.Fatalf("wait with frequency %v and Retry-After %v: got %v, want at least Retry-After and at most %v", frequency, after, got, max(maxRequestInterval, frequency, after))
		}
	})
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 2, 40, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "0": 0, "-5": 0, "soon": 0, "99999999999999999999": 0, "999999999": maxRequestInterval, "700": maxRequestInterval,
		"Sat, 21 Nov 2026 02:41:00 GMT": time.Minute, "Sat, 21 Nov 2026 02:39:00 GMT": 0, "Sat, 21 Nov 2027 02:40:00 GMT": maxRequestInterval,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("parseRetryAfter(%q): got %v, want %v", value, got, want)
		}
	}
}
