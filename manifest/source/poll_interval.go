package source

import "time"

// pollInterval computes the time between two requests to a server.
type pollInterval struct {
	baseInterval time.Duration
	random       func() float64 // returns a random number in the interval [0, 1)
}

const (
	// maxRequestInterval is the longest time between two requests.
	maxRequestInterval = 10 * time.Minute
	// jitterFraction is the maximum random change of an interval, ±20 %. It prevents many hosts
	// from sending their requests at the same time.
	jitterFraction = 0.2
	// firstRetryDelay is the wait after the first request without a response. It is short, because
	// the reason may be that the network is not up yet.
	firstRetryDelay = time.Second
)

// nextWait returns how long to wait after a request. failures is the number of consecutive failed
// requests; 0 after a successful request. hasNoResponse reports whether the server did not respond.
// retryAfter is the server's Retry-After; the result is at least as long.
func (p pollInterval) nextWait(failures int, hasNoResponse bool, retryAfter time.Duration) time.Duration {
	wait := p.baseInterval
	if hasNoResponse {
		wait = min(firstRetryDelay, wait)
	}
	for range min(failures, 30) - 1 {
		wait = min(2*wait, maxRequestInterval)
	}
	wait = time.Duration(float64(wait) * (1 - jitterFraction + 2*jitterFraction*p.random()))
	return max(min(wait, max(maxRequestInterval, p.baseInterval)), retryAfter)
}
