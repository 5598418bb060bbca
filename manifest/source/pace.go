package source

import "time"

// pace is how often a server is asked.
type pace struct {
	frequency time.Duration
	random    func() float64 // from [0, 1)
}

const (
	// maxWait is the longest time between two requests.
	maxWait = 10 * time.Minute
	// jitter spreads requests of many machines: ±20 %.
	jitter = 0.2
	// firstRetry is the wait after a server first was silent, which may be just
	// a network that is not up yet.
	firstRetry = time.Second
)

// wait is how long to wait after a request. failures counts those in a row that
// failed, 0 after a good one; silent says that no answer came at all; after is
// what the server asked for, which is the least.
func (p pace) wait(failures int, silent bool, after time.Duration) time.Duration {
	wait := p.frequency
	if silent {
		wait = min(firstRetry, wait)
	}
	for range min(failures, 30) - 1 {
		wait = min(2*wait, maxWait)
	}
	wait = time.Duration(float64(wait) * (1 - jitter + 2*jitter*p.random()))
	return max(min(wait, max(maxWait, p.frequency)), after)
}
