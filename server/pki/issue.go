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

// SignClient creates a private key and signs a certificate for a client with a user name and
// groups. The certificate expires after lifetime. cert and key are in PEM.
func (a *Authority) SignClient(user string, groups []string, lifetime time.Duration) (cert, key []byte, err error) {
	issuer := a.currentIssuer.Load()
	privateKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, issuer.cert, &privateKey.PublicKey, issuer.key, time.Now().Add(-backdate), time.Now().Add(lifetime))
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a client's key: %w", err)
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", text), nil
}

// A ServingCertificate is the serving certificate of one server. It is renewed long before it
// expires, and replaced when the authority or the server's addresses have changed. It is safe for
// concurrent use.
type ServingCertificate struct {
	authority *Authority
	names     []string
	ips       func() []net.IP

	mu     sync.Mutex // guards cert and issuer
	cert   *tls.Certificate
	issuer *issuer // the issuer that signed cert
}

// NewServingCertificate returns a serving certificate for a server with these DNS names and
// with the IP addresses that ips returns. Get calls ips each time.
func (a *Authority) NewServingCertificate(names []string, ips func() []net.IP) *ServingCertificate {
	return &ServingCertificate{authority: a, names: names, ips: ips}
}

// Get returns the current certificate. It creates a new one if there is none or if the
// current one must be renewed.
func (s *ServingCertificate) Get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, issuer, ips := time.Now(), s.authority.currentIssuer.Load(), s.ips()
	if s.cert != nil && s.issuer == issuer && s.cert.Leaf.NotAfter.Sub(now) > servingLifetime/3 && !now.Before(s.cert.Leaf.NotBefore) &&
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
	}, issuer.cert, &key.PublicKey, issuer.key, now.Add(-backdate), now.Add(servingLifetime))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.cert = &tls.Certificate{Certificate: [][]byte{der, issuer.cert.Raw}, PrivateKey: key, Leaf: leaf}
	s.issuer = issuer
	return s.cert, nil
}
