package cluster

import "crypto/tls"

// Serving makes Run request and renew the node's serving certificate. It returns a function that
// returns the current certificate, or nil if podd has no valid certificate. A stored certificate is
// available at once. Serving must be called at most once, before Run.
func (c *Cluster) Serving() func() *tls.Certificate {
	c.serving = &identity{}
	stored, err := c.o.certFiles(servingPurpose).load()
	if err != nil {
		c.o.Log.Warn("loading the stored serving certificate failed; requesting a new one", "err", err)
	}
	if stored != nil {
		c.serving.current.Store(stored)
	}
	return c.serving.validCertificate
}
