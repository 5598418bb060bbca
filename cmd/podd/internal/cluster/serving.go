package cluster

import "crypto/tls"

// Serving makes podd request the serving certificate of the node from the cluster. It
// returns a function that returns the certificate, or nil if there is no valid one. A
// stored certificate is used from the start. It must be called at most once, before Run.
func (c *Cluster) Serving() func() *tls.Certificate {
	c.serving = &identity{}
	kept, err := c.o.pairs(servingPurpose).load()
	if err != nil {
		c.o.Log.Warn("another certificate is asked for", "err", err)
	}
	if kept != nil {
		c.serving.now.Store(kept)
	}
	return c.serving.valid
}
