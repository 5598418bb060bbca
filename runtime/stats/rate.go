package stats

import "time"

// reading is the value of a CPU time counter, in nanoseconds, at a time.
type reading struct {
	at    time.Time
	total uint64
}

// maxWindow is the maximum age of a reading for computing a current rate.
const maxWindow = 2 * time.Minute

// rate returns the CPU time per second, in nanoseconds, between two readings. It returns
// nil if the counter was reset, or if no time has passed.
func rate(from, to reading) *uint64 {
	elapsed := to.at.Sub(from.at)
	if elapsed <= 0 || elapsed > maxWindow || to.total < from.total {
		return nil
	}
	n := uint64(float64(to.total-from.total) / elapsed.Seconds())
	return &n
}

// since returns the reading from which the current rate is computed: the last one of the
// same cgroup or, for a cgroup created after it, zero at its creation. It returns false if
// neither is known.
func since(last reading, known bool, created time.Time, now reading) (reading, bool) {
	restarted := !known || now.total < last.total || created.After(last.at)
	switch {
	case !restarted:
		return last, true
	case created.IsZero() || now.at.Sub(created) > maxWindow:
		return reading{}, false
	}
	return reading{at: created}, true
}
