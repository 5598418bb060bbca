package daemon

import "runtime"

// profileContention makes the block and mutex profiles of this process record all events, or none if
// isEnabled is false.
func profileContention(isEnabled bool) {
	rate := 0
	if isEnabled {
		rate = 1
	}
	runtime.SetBlockProfileRate(rate)
	runtime.SetMutexProfileFraction(rate)
}
