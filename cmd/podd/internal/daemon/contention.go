package daemon

import "runtime"

// profileContention makes the block and mutex profiles of this process record all events.
func profileContention() {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
}
