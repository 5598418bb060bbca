// Package clock reads the clocks of the host: the wall clock, which a user or an NTP client may
// set, and the time since the boot, which cannot be set.
package clock

import (
	"time"

	"golang.org/x/sys/unix"

	"podd/reconcile/state"
	"podd/runtime/bootid"
)

// Read reads the clocks. If the time since the boot cannot be read, only Now is set.
func Read() state.ClockReading {
	r := state.ClockReading{Now: time.Now()}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err == nil {
		r.BootID, _ = bootid.Get()
		r.SinceBoot = time.Duration(up.Nano())
	}
	return r
}

// BootTime returns the time at which the host started, or zero if it cannot be determined.
func BootTime() time.Time {
	r := Read()
	if r.SinceBoot == 0 {
		return time.Time{}
	}
	return r.Now.Add(-r.SinceBoot)
}
