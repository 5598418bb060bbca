package cluster

import "crypto/tls"

// ServingCertificate returns the serving certificate of the kubelet API that the cluster has issued,
// or nil while podd has no valid certificate. Options.RequestServingCert must be set.
func (c *Cluster) ServingCertificate() *tls.Certificate { return c.servingIdentity.validCertificate() }

// loadServingIdentity returns the serving certificate that an earlier podd process has stored, or an
// identity without a certificate.
func (o *Options) loadServingIdentity() *identity {
	i := &identity{}
	stored, err := o.certFiles(servingPurpose).load()
	if err != nil {
		o.Log.Warn("loading the stored serving certificate failed; requesting a new one", "err", err)
	}
	if stored != nil {
		i.current.Store(stored)
	}
	return i
}
