package credential

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// An Identity contains a certificate and its key. podd renews the certificate. An Identity is safe
// for concurrent use.
type Identity struct {
	current atomic.Pointer[tls.Certificate] // may be nil
	// isExternal is set if podd did not request the certificate itself. podd then renews the
	// certificate at once.
	isExternal atomic.Bool
}

// ValidCertificate returns the certificate, or nil if i has no certificate or the certificate has
// expired.
func (i *Identity) ValidCertificate() *tls.Certificate {
	if pair := i.current.Load(); pair != nil && time.Now().Before(pair.Leaf.NotAfter) {
		return pair
	}
	return nil
}

// NotAfter returns the expiry of the certificate. ok is false if i has no certificate.
func (i *Identity) NotAfter() (expiry time.Time, ok bool) {
	pair := i.current.Load()
	if pair == nil {
		return expiry, false
	}
	return pair.Leaf.NotAfter, true
}

// chooseIdentity returns the client certificate that podd uses and renews. If the kubeconfig and
// CertDir both contain a valid certificate, chooseIdentity chooses the certificate that was issued
// later. It returns nil if the kubeconfig contains another kind of credential, or if
// RotateCertificates is false.
func (m *Manager) chooseIdentity(config *rest.Config) (*Identity, error) {
	if !m.RotateCertificates {
		return nil, nil
	}
	config = rest.CopyConfig(config) // loadClientCert modifies the copy; client-go must get the original, so that it reloads certificate files that change
	pair, err := loadClientCert(config)
	if pair == nil || err != nil {
		return nil, err
	}
	i := &Identity{}
	files := m.certFiles(clientPurpose)
	stored, err := files.load()
	if err != nil {
		m.Log.Warn("loading the stored client certificate failed; requesting a new one", "err", err)
	}
	isExpired := func(p *tls.Certificate) bool { return time.Now().After(p.Leaf.NotAfter) }
	if stored != nil && stored.Leaf.Subject.CommonName == m.certSubject().CommonName &&
		!stored.Leaf.NotBefore.Before(pair.Leaf.NotBefore) && (!isExpired(stored) || isExpired(pair)) {
		i.current.Store(stored)
		return i, nil
	}
	i.current.Store(pair)
	i.isExternal.Store(true)
	if _, err := files.store(config.CertData, config.KeyData); err != nil {
		return nil, fmt.Errorf("storing the client certificate of the kubeconfig in %s: %w", m.CertDir, err)
	}
	return i, nil
}

// loadClientCert returns the client certificate of config, or nil if config has none. It reads
// certificate files into config.
func loadClientCert(config *rest.Config) (*tls.Certificate, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	if len(config.CertData) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	return &pair, err
}

// renewalTime returns the time at which a certificate must be renewed, after 70 to 90 % of its
// lifetime. The percentage is derived from the signature of the certificate. Therefore it differs
// between certificates, but is always the same for one certificate.
func renewalTime(leaf *x509.Certificate) time.Time {
	var sum uint16
	for _, b := range leaf.Signature {
		sum = sum*31 + uint16(b)
	}
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration((0.7 + 0.2*float64(sum)/(1<<16)) * float64(lifetime)))
}

// LoadServingIdentity returns the serving certificate that an earlier podd process has stored, or an
// Identity without a certificate.
func (m *Manager) LoadServingIdentity() *Identity {
	i := &Identity{}
	stored, err := m.certFiles(servingPurpose).load()
	if err != nil {
		m.Log.Warn("loading the stored serving certificate failed; requesting a new one", "err", err)
	}
	if stored != nil {
		i.current.Store(stored)
	}
	return i
}
