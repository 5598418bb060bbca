package objects

import (
	"testing"
	"time"
)

func TestRenewalDelay(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 8 * time.Minute, time.Hour: 48 * time.Minute, 365 * 24 * time.Hour: 24 * time.Hour, -time.Hour: 20 * time.Second,
	} {
		if got := renewalDelay(lifetime); got != want {
			t.Errorf("renewalDelay(%s): got %s, want %s", lifetime, got, want)
		}
	}
}
