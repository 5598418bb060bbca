package cluster

import "crypto/tls"

// Serving makes Run request the serving certificate of the node from the cluster. It returns a
// function that returns the certificate, or nil if there is no valid one. A stored certificate
// is used from the start. Serving must be called at most once, before Run.
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
