package printer

import (
	"testing"
	"time"
)

// TestFormatDuration checks the units and the rounding of durations. A short duration must not be
// formatted as "0.0s".
func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 30 * time.Millisecond: "30ms", 96 * time.Millisecond: "96ms", 99900 * time.Microsecond: "0.1s",
		100 * time.Millisecond: "0.1s", 1260 * time.Millisecond: "1.3s", 9960 * time.Millisecond: "10s", 31 * time.Second: "31s", 6 * time.Minute: "6m",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
