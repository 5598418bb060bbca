package auth

import (
	"crypto/x509"
	"sync"
	"time"
)

// verified remembers which certificates a pool vouches for: verifying one takes
// longer than most answers, and a connection shows the same with each request.
// Only what counts is remembered. Its zero value is empty; safe for concurrent use.
type verified struct {
	mu sync.Mutex // guards all following fields
	of map[*x509.Certificate]vouched
}

// mostVerified is how many are remembered.
const mostVerified = 256

// vouched holds while the pool is the same and every certificate up to its root is
// in its time.
type vouched struct {
	by          *x509.CertPool
	from, until time.Time
}

// knows says that by vouches for c at a time. False means nothing.
func (v *verified) knows(c *x509.Certificate, by *x509.CertPool, at time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.of[c]
	return ok && known.by == by && !at.Before(known.from) && !at.After(known.until)
}

// learn takes the chain from a certificate, the first, to its root in by.
func (v *verified) learn(chain []*x509.Certificate, by *x509.CertPool) {
	known := vouched{by, chain[0].NotBefore, chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(known.from) {
			known.from = c.NotBefore
		}
		if c.NotAfter.Before(known.until) {
			known.until = c.NotAfter
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || len(v.of) >= mostVerified {
		v.of = map[*x509.Certificate]vouched{}
	}
	v.of[chain[0]] = known
}
