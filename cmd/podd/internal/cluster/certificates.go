package cluster

import (
	"crypto/tls"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// ServingCertificate returns the serving certificate of the kubelet API that the cluster has issued,
// or nil while podd has no valid certificate. Options.RequestServingCert must be set.
func (c *Cluster) ServingCertificate() *tls.Certificate { return c.servingIdentity.ValidCertificate() }

// ClientCertExpiry returns the expiry of the client certificate. ok is false if podd does not
// renew the client certificate.
func (c *Cluster) ClientCertExpiry() (expiry time.Time, ok bool) {
	i := c.clientIdentity.Load()
	if i == nil {
		return expiry, false
	}
	return i.NotAfter()
}

// servingAddresses returns a function that returns the addresses for the serving certificate: the
// addresses that the Node should have. The function returns nil if the View contains no Node yet.
func (c *Cluster) servingAddresses(state server.Viewer) func() []v1.NodeAddress {
	return func() []v1.NodeAddress {
		localNode := state.View().NodeObject
		if localNode == nil {
			return nil
		}
		var stored []v1.NodeAddress
		if n, _ := c.nodes.Find(types.NamespacedName{Name: c.o.NodeName}); n != nil {
			stored = n.Status.Addresses
		}
		return c.o.Node.Addresses(stored, localNode.Status.Addresses)
	}
}
