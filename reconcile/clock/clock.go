// Package clock reads the clocks of the host: the wall clock, which a user or an NTP
// client may set, and the time since the boot, which nothing sets.
package clock

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Reading contains the values of the clocks at one moment.
type Reading struct {
	// Now is the wall clock, with a monotonic reading.
	Now time.Time
	// Boot is the random ID of the present boot of the host; "" if it cannot be read.
	Boot string
	// Up is the time since the boot, including suspended time (CLOCK_BOOTTIME).
	Up time.Duration
}

// Read returns the present values of the clocks.
func Read() Reading {
	r := Reading{Now: time.Now()}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err == nil {
		r.Boot, r.Up = boot(), time.Duration(up.Nano())
	}
	return r
}

// boot returns the kernel's random ID of this boot; "" if it cannot be read.
var boot = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})
