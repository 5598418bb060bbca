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
	"sync"
	"time"
)

// Client makes a certificate and key, in PEM, by which a client is the user and
// of the groups for a while.
func (a *Authority) Client(user string, groups []string, life time.Duration) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, &private.PublicKey, a.key, time.Now().Add(-early), time.Now().Add(life))
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a client's key: %w", err)
	}
	return pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", text), nil
}

// Serving is the certificate podd shows to its clients, made anew long before
// it ends. Safe for concurrent use.
type Serving struct {
	by    *Authority
	names []string
	ips   []net.IP

	mu   sync.Mutex // guards cert
	cert *tls.Certificate
}

// Serving returns the certificate of a server that is reached by these names
// and addresses.
func (a *Authority) Serving(names []string, ips []net.IP) *Serving {
	return &Serving{by: a, names: names, ips: ips}
}

// Get is the present certificate.
func (s *Serving) Get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.cert != nil && s.cert.Leaf.NotAfter.Sub(now) > servingLife/3 && !now.Before(s.cert.Leaf.NotBefore) {
		return s.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: s.names[0]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    s.names, IPAddresses: s.ips,
	}, s.by.cert, &key.PublicKey, s.by.key, now.Add(-early), now.Add(servingLife))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.cert = &tls.Certificate{Certificate: [][]byte{der, s.by.cert.Raw}, PrivateKey: key, Leaf: leaf}
	return s.cert, nil
}
