package auth

import (
	"crypto/x509"
	"sync"
	"time"
)

// certCache caches successful verifications of certificates. All requests on a connection have the
// same certificate, and verifying the certificate takes longer than most other work for a request.
// The zero value is an empty cache. certCache is safe for concurrent use.
type certCache struct {
	mu      sync.Mutex // guards all following fields
	entries map[*x509.Certificate]verification
}

// maxVerifications limits the number of cached certificates.
const maxVerifications = 256

// A verification records that the chain of a certificate leads to an authority in roots. All
// certificates of the chain are valid from validFrom until validUntil.
type verification struct {
	roots                 *x509.CertPool
	validFrom, validUntil time.Time
}

// contains reports whether the cache has a verification of c against roots that is
// valid at the given time. If it returns false, the certificate must be verified.
func (v *certCache) contains(c *x509.Certificate, roots *x509.CertPool, at time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry, ok := v.entries[c]
	return ok && entry.roots == roots && !at.Before(entry.validFrom) && !at.After(entry.validUntil)
}

// add caches the verification of chain, which leads from the client's certificate
// to its root in roots.
func (v *certCache) add(chain []*x509.Certificate, roots *x509.CertPool) {
	entry := verification{roots, chain[0].NotBefore, chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(entry.validFrom) {
			entry.validFrom = c.NotBefore
		}
		if c.NotAfter.Before(entry.validUntil) {
			entry.validUntil = c.NotAfter
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.entries == nil || len(v.entries) >= maxVerifications {
		v.entries = map[*x509.Certificate]verification{}
	}
	v.entries[chain[0]] = entry
}
