package cluster

import "crypto/tls"

// Serving has podd ask the cluster for the certificate that the node's own API shows.
// It returns what gives that, nil while there is none that is good; the one that was
// kept counts from the start. It is called once at most, before Run.
func (c *Cluster) Serving() func() *tls.Certificate {
	c.serving = &identity{}
	kept, err := c.o.pairs(toServe).load()
	if err != nil {
		c.o.Log.Warn("another certificate is asked for", "err", err)
	}
	if kept != nil {
		c.serving.now.Store(kept)
	}
	return c.serving.good
}
