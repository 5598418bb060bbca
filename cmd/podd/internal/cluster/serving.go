package cluster

import "crypto/tls"

// Serving enables the request and renewal of the node's serving certificate by Run. It returns a
// function that returns the current certificate, or nil if no valid certificate has been issued.
// A stored certificate is available at once. Serving must be called at most once, before Run.
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
