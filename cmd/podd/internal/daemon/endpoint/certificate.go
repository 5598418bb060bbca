package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"podd/server/reload"
)

// A certificateFunc returns the current serving certificate of the kubelet API. It is used as
// tls.Config.GetCertificate.
type certificateFunc func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// expiry returns the expiration time of the certificate. It returns an error for a nil
// certificateFunc.
func (f certificateFunc) expiry() (time.Time, error) {
	if f == nil {
		return time.Time{}, errors.New("the kubelet API is disabled")
	}
	c, err := f(nil)
	if err != nil {
		return time.Time{}, err
	}
	leaf := c.Leaf
	if leaf == nil { // Leaf is nil with GODEBUG=x509keypairleaf=0
		if leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
			return time.Time{}, err
		}
	}
	return leaf.NotAfter, nil
}

// newCertificateFunc returns a certificateFunc. The certificateFunc returns the certificate that
// the cluster has signed or, if there is none, the certificate of newNodeCertificateFunc.
// newCertificateFunc returns nil if the kubelet API is disabled.
func (o *Options) newCertificateFunc() (certificateFunc, error) {
	if o.PKI == nil {
		return nil, nil
	}
	nodeCert, err := o.newNodeCertificateFunc()
	if err != nil || o.Cluster == nil || o.Cluster.ServingCertificate == nil {
		return nodeCert, err
	}
	clusterCert := o.Cluster.ServingCertificate
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := clusterCert(); c != nil {
			return c, nil
		}
		return nodeCert(hello)
	}, nil
}

// newNodeCertificateFunc returns a certificateFunc that returns the configured certificate and
// reloads it when its files change. Without a configured certificate, the certificateFunc returns
// a certificate that podd issues.
func (o *Options) newNodeCertificateFunc() (certificateFunc, error) {
	a := o.Server.API
	if a.CertFile == "" {
		poddCert := o.PKI.NewServingCertificate([]string{o.Node, "localhost"}, o.ServingIPs)
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return poddCert.Get() }, nil
	}
	f, err := reload.Open(o.Log, func(files [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(files[0], files[1])
		return &pair, err
	}, a.CertFile, a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.Get(), nil }, nil
}
