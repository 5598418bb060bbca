package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"sync"
)

// Trust returns the roots that verify the authority's own certificates and those of
// the CA certificates in text, which may be empty.
func (a *Authority) Trust(text []byte) (*x509.CertPool, error) { return a.now.Load().trust(text) }

func (i *issuer) trust(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(i.cert)
	if len(text) > 0 && !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("it contains no certificate in PEM format")
	}
	return pool, nil
}

// Roots returns Trust as a function that follows Replace and the CA certificates that
// text returns; nil stands for none, and so does what Trust rejects. The pool remains
// the same value until one of them changes. The function is safe for concurrent use if
// text is.
func (a *Authority) Roots(text func() []byte) func() *x509.CertPool {
	if text == nil {
		text = func() []byte { return nil }
	}
	var mu sync.Mutex // guards by, of and pool
	var by *issuer
	var of []byte
	var pool *x509.CertPool
	return func() *x509.CertPool {
		now := text()
		mu.Lock()
		defer mu.Unlock()
		i := a.now.Load()
		if i == by && bytes.Equal(now, of) {
			return pool
		}
		got, err := i.trust(now)
		if err != nil {
			got, _ = i.trust(nil) // cannot fail
		}
		by, of, pool = i, now, got
		return pool
	}
}
