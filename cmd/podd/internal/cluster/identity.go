package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// An identity is a certificate with its key that podd renews. It is safe for concurrent
// use.
type identity struct {
	now atomic.Pointer[tls.Certificate] // may be nil
	// given is set if the certificate is not from podd's own requests. It is renewed at once.
	given atomic.Bool
}

// valid returns the certificate, or nil if there is none or it has expired.
func (i *identity) valid() *tls.Certificate {
	if pair := i.now.Load(); pair != nil && time.Now().Before(pair.Leaf.NotAfter) {
		return pair
	}
	return nil
}

// ClientCertExpiry returns the expiry of the client certificate, or false if podd does
// not renew it.
func (c *Cluster) ClientCertExpiry() (until time.Time, ok bool) {
	i := c.clientIdentity.Load()
	if i == nil {
		return until, false
	}
	pair := i.now.Load()
	if pair == nil {
		return until, false
	}
	return pair.Leaf.NotAfter, true
}

// httpClient returns a client that uses i, or the certificate in config if i is nil.
func (i *identity) httpClient(config *rest.Config) (*http.Client, error) {
	if i == nil {
		return rest.HTTPClientFor(config)
	}
	t, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	t.TLS.CertFile, t.TLS.KeyFile, t.TLS.CertData, t.TLS.KeyData = "", "", nil, nil
	t.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: func() (*tls.Certificate, error) { return i.now.Load(), nil }}
	rt, err := transport.New(t)
	return &http.Client{Transport: rt, Timeout: config.Timeout}, err
}

// identity returns the client certificate that is renewed: that of the kubeconfig or the
// stored one, whichever was issued later and has not expired. It returns nil if the
// kubeconfig contains another kind of credential.
func (o *Options) identity(config *rest.Config) (*identity, error) {
	if !o.RotateCertificates {
		return nil, nil
	}
	config = rest.CopyConfig(config) // files are reloaded if they change
	pair, err := loadPair(config)
	if pair == nil || err != nil {
		return nil, err
	}
	i := &identity{}
	files := o.pairs(clientPurpose)
	kept, err := files.load()
	if err != nil {
		o.Log.Warn("another certificate is asked for", "err", err)
	}
	over := func(p *tls.Certificate) bool { return time.Now().After(p.Leaf.NotAfter) }
	if kept != nil && kept.Leaf.Subject.CommonName == o.subject().CommonName &&
		!kept.Leaf.NotBefore.Before(pair.Leaf.NotBefore) && (!over(kept) || over(pair)) {
		i.now.Store(kept)
		return i, nil
	}
	i.now.Store(pair)
	i.given.Store(true)
	if _, err := files.store(config.CertData, config.KeyData); err != nil {
		return nil, fmt.Errorf("keeping it in %s: %w", o.CertDir, err)
	}
	return i, nil
}

// loadPair returns the certificate of a configuration, or nil if it has none.
func loadPair(config *rest.Config) (*tls.Certificate, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	if len(config.CertData) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	return &pair, err
}

// renewAt returns the time of the renewal, after 70 to 90 % of the lifetime. It is
// derived from the signature, so that it is stable for one certificate and differs
// between certificates.
func renewAt(leaf *x509.Certificate) time.Time {
	var sum uint16
	for _, b := range leaf.Signature {
		sum = sum*31 + uint16(b)
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration((0.7 + 0.2*float64(sum)/(1<<16)) * float64(life)))
}
