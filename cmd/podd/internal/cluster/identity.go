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

// identity is a certificate that is renewed, with its key. Safe for concurrent use.
type identity struct {
	now atomic.Pointer[tls.Certificate] // nil: there is none yet
	// given says that somebody else made it: it is renewed at once, so that the next
	// ones are podd's own.
	given atomic.Bool
}

// good is the certificate, nil when it is over or there is none.
func (i *identity) good() *tls.Certificate {
	if pair := i.now.Load(); pair != nil && time.Now().Before(pair.Leaf.NotAfter) {
		return pair
	}
	return nil
}

// Identity is until when the certificate is good by which podd is known to the cluster;
// false: it is known by none that is renewed.
func (c *Cluster) Identity() (until time.Time, ok bool) {
	i := c.known.Load()
	if i == nil {
		return until, false
	}
	pair := i.now.Load()
	if pair == nil {
		return until, false
	}
	return pair.Leaf.NotAfter, true
}

// httpClient is one that shows i, or what config says when that is nil.
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

// identity is by what podd is known with renewal: the certificate of a kubeconfig, or
// the one that was kept, whichever was made later and is not over. A kubeconfig that
// has none says otherwise who podd is, and nothing is renewed: that is nil.
func (o *Options) identity(config *rest.Config) (*identity, error) {
	if !o.RotateCertificates {
		return nil, nil
	}
	config = rest.CopyConfig(config) // whose files are read again when they change
	pair, err := pairOf(config)
	if pair == nil || err != nil {
		return nil, err
	}
	i := &identity{}
	files := o.pairs(toAsk)
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
	if _, err := files.keep(config.CertData, config.KeyData); err != nil {
		return nil, fmt.Errorf("keeping it in %s: %w", o.CertDir, err)
	}
	return i, nil
}

// pairOf reads the certificate of a configuration; nil when it has none.
func pairOf(config *rest.Config) (*tls.Certificate, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	if len(config.CertData) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	return &pair, err
}

// renewAt is when the next certificate is to be asked for, after 70 to 90 % of a life:
// always the same for one certificate, and another for each.
func renewAt(leaf *x509.Certificate) time.Time {
	var sum uint16
	for _, b := range leaf.Signature {
		sum = sum*31 + uint16(b)
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration((0.7 + 0.2*float64(sum)/(1<<16)) * float64(life)))
}
