package stats

import "time"

// reading is a counter of processor time, in nanoseconds, at a moment.
type reading struct {
	at    time.Time
	total uint64
}

// maxWindow is how old a reading may be for a rate since then to speak of now.
const maxWindow = 2 * time.Minute

// rate is the processor time a second, in nanoseconds, between two readings; nil
// when they do not tell: the counter began anew, or no time has passed.
func rate(from, to reading) *uint64 {
	elapsed := to.at.Sub(from.at)
	if elapsed <= 0 || elapsed > maxWindow || to.total < from.total {
		return nil
	}
	n := uint64(float64(to.total-from.total) / elapsed.Seconds())
	return &n
}

// since is the reading that a rate up to now counts from: the last one of the
// same cgroup, or, of one that was made later, its beginning at zero. false:
// neither is known.
func since(last reading, known bool, made time.Time, now reading) (reading, bool) {
	anew := !known || now.total < last.total || made.After(last.at)
	switch {
	case !anew:
		return last, true
	case made.IsZero() || now.at.Sub(made) > maxWindow:
		return reading{}, false
	}
	return reading{at: made}, true
}
