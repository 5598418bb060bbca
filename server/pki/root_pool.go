package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"sync"
)

// RootPool returns a pool that contains the authority's certificate and the CA certificates in
// caPEM, which may be empty. It returns an error if caPEM is not empty but contains no certificate.
func (a *Authority) RootPool(caPEM []byte) (*x509.CertPool, error) {
	return a.currentIssuer.Load().rootPool(caPEM)
}

func (i *issuer) rootPool(caPEM []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(i.cert)
	if len(caPEM) > 0 && !pool.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("the CA bundle contains no certificate in PEM format")
	}
	return pool, nil
}

// RootPoolFunc returns a function that returns the current RootPool. caPEM returns additional CA
// certificates in PEM, and may be nil. If caPEM returns no valid certificate, the pool contains
// only the authority's certificate. The function returns the same pool until the authority or the
// result of caPEM changes. It is safe for concurrent use if caPEM is safe for concurrent use.
func (a *Authority) RootPoolFunc(caPEM func() []byte) func() *x509.CertPool {
	if caPEM == nil {
		caPEM = func() []byte { return nil }
	}
	var mu sync.Mutex // guards the following variables
	var lastIssuer *issuer
	var lastText []byte
	var pool *x509.CertPool
	return func() *x509.CertPool {
		text := caPEM()
		mu.Lock()
		defer mu.Unlock()
		i := a.currentIssuer.Load()
		if i == lastIssuer && bytes.Equal(text, lastText) {
			return pool
		}
		newPool, err := i.rootPool(text)
		if err != nil {
			newPool, _ = i.rootPool(nil) // no error is possible without additional certificates
		}
		lastIssuer, lastText, pool = i, text, newPool
		return pool
	}
}
