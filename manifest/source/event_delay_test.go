package source

import (
	"testing"
	"time"
)

// TestEventDelay checks that podd checks the files soon after a single event, and that the pause between
// two checks grows with the duration of a check.
func TestEventDelay(t *testing.T) {
	for _, tt := range []struct{ took, quiet, want time.Duration }{
		{0, 0, minEventDelay},
		{10 * time.Millisecond, 0, 90 * time.Millisecond},
		{10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond},
		{10 * time.Millisecond, time.Second, minEventDelay},
		{time.Minute, 0, maxScanPause},
		{time.Minute, maxScanPause, minEventDelay},
	} {
		now := time.Now()
		f := &follower{Dir: &Dir{opts: Options{Now: func() time.Time { return now }}}, nextScan: now.Add(time.Hour)}
		f.pauseAfterScan(tt.took)
		now = now.Add(tt.quiet)
		f.scheduleScanAfterEvents()
		if got := f.nextScan.Sub(now); got != tt.want {
			t.Errorf("delay of an event %v after a check of %v: got %v, want %v", tt.quiet, tt.took, got, tt.want)
		}
	}
}
