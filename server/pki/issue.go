package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Client returns a certificate and private key, both in PEM, for a client with the
// given user name and groups. The certificate is valid for life from now.
func (a *Authority) Client(user string, groups []string, life time.Duration) (cert, key []byte, err error) {
	by := a.now.Load()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, by.cert, &private.PublicKey, by.key, time.Now().Add(-backdate), time.Now().Add(life))
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a client's key: %w", err)
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", text), nil
}

// Serving provides podd's serving certificate. It is renewed long before it
// expires, and replaced when the authority or the server's addresses have changed.
// It is safe for concurrent use.
type Serving struct {
	by    *Authority
	names []string
	ips   func() []net.IP

	mu     sync.Mutex // guards cert and issuer
	cert   *tls.Certificate
	issuer *issuer // the issuer of cert
}

// Serving returns the serving certificate of a server that has these DNS names and
// the addresses that ips returns. Each Get calls ips.
func (a *Authority) Serving(names []string, ips func() []net.IP) *Serving {
	return &Serving{by: a, names: names, ips: ips}
}

// Get returns the current certificate and renews it if necessary.
func (s *Serving) Get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, by, ips := time.Now(), s.by.now.Load(), s.ips()
	if s.cert != nil && s.issuer == by && s.cert.Leaf.NotAfter.Sub(now) > servingLifetime/3 && !now.Before(s.cert.Leaf.NotBefore) &&
		slices.EqualFunc(s.cert.Leaf.IPAddresses, ips, net.IP.Equal) {
		return s.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: s.names[0]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    s.names, IPAddresses: ips,
	}, by.cert, &key.PublicKey, by.key, now.Add(-backdate), now.Add(servingLifetime))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.cert = &tls.Certificate{Certificate: [][]byte{der, by.cert.Raw}, PrivateKey: key, Leaf: leaf}
	s.issuer = by
	return s.cert, nil
}
