package cluster

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// findNode returns the Node with a name in the last list or watch, or nil if there is none. changed is
// closed when the Node changes.
func (s *sharedState) findNode(name string) (n *v1.Node, changed <-chan struct{}) {
	nodes, changed := s.nodes.Get()
	return nodes.Items[types.NamespacedName{Name: name}], changed
}

// PodCIDR returns the address ranges of pods that the cluster has assigned to the Node, separated by
// commas. It returns "" if there are none, or before the Node was received.
func (c *Cluster) PodCIDR() string {
	n, _ := c.findNode(c.o.NodeName)
	if n == nil {
		return ""
	}
	return strings.Join(n.Spec.PodCIDRs, ",")
}
