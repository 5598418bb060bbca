package clock_test

import (
	"os"
	"strings"
	"testing"

	"podd/reconcile/clock"
)

// TestRead checks that readings have the ID of the boot and increase.
func TestRead(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	first, second := clock.Read(), clock.Read()
	if want := strings.TrimSpace(string(text)); first.BootID != want || second.BootID != want {
		t.Errorf("boot IDs of the two readings: got %q and %q; want %q", first.BootID, second.BootID, want)
	}
	if first.SinceBoot <= 0 || second.SinceBoot < first.SinceBoot || second.Now.Before(first.Now) {
		t.Errorf("two readings: got %+v, then %+v; want increasing times", first, second)
	}
}
