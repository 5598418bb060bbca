package source

import (
	"testing"
	"time"
)

// TestEventDelay checks that the delay after an event grows with the duration of a check.
func TestEventDelay(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct{ took, want time.Duration }{
		{0, minEventDelay},
		{10 * time.Millisecond, 90 * time.Millisecond},
		{time.Minute, maxEventDelay},
	} {
		f := &follower{Dir: &Dir{opts: Options{Now: func() time.Time { return now }}}, lastScanDuration: tt.took, nextScan: now.Add(time.Hour)}
		f.scheduleScanAfterEvents()
		if got := f.nextScan.Sub(now); got != tt.want {
			t.Errorf("delay after a check of %v: got %v, want %v", tt.took, got, tt.want)
		}
	}
}
