package cluster

import "crypto/tls"

// EnableServingCertificate makes Run request and renew the node's serving certificate. The returned
// function returns the current certificate, or nil while podd has no valid certificate. A
// certificate that an earlier podd process has stored is available at once.
// EnableServingCertificate must be called at most once, before Run.
func (c *Cluster) EnableServingCertificate() func() *tls.Certificate {
	c.servingIdentity = &identity{}
	stored, err := c.o.certFiles(servingPurpose).load()
	if err != nil {
		c.o.Log.Warn("loading the stored serving certificate failed; requesting a new one", "err", err)
	}
	if stored != nil {
		c.servingIdentity.current.Store(stored)
	}
	return c.servingIdentity.validCertificate
}
