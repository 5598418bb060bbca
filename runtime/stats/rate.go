package stats

import "time"

// A reading is the value of a CPU time counter in nanoseconds at one time.
type reading struct {
	at               time.Time
	totalNanoseconds uint64
}

// maxRateWindow is the maximum age of a reading from which a current rate is computed.
const maxRateWindow = 2 * time.Minute

// cpuRate returns the CPU time per second between two readings, in nanoseconds. It returns nil
// if the counter was reset or no time has passed.
func cpuRate(from, to reading) *uint64 {
	elapsed := to.at.Sub(from.at)
	if elapsed <= 0 || elapsed > maxRateWindow || to.totalNanoseconds < from.totalNanoseconds {
		return nil
	}
	n := uint64(float64(to.totalNanoseconds-from.totalNanoseconds) / elapsed.Seconds())
	return &n
}

// baseReading returns the reading from which the current rate is computed. If hasLastReading is true and
// last is a reading of the same cgroup, baseReading returns last. Otherwise the cgroup is new, and
// baseReading returns a reading of 0 whose time is the creation time of the cgroup (created). ok is
// false if this time is unknown or more than maxRateWindow ago.
func baseReading(last reading, hasLastReading bool, created time.Time, now reading) (from reading, ok bool) {
	isNew := !hasLastReading || now.totalNanoseconds < last.totalNanoseconds || created.After(last.at)
	switch {
	case !isNew:
		return last, true
	case created.IsZero() || now.at.Sub(created) > maxRateWindow:
		return reading{}, false
	}
	return reading{at: created}, true
}
