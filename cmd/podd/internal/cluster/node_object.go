package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// PodCIDR returns the address ranges of pods that the cluster has assigned to the Node, separated by
// commas. It returns "" if there are none, or before the Node was received.
func (c *Cluster) PodCIDR() string {
	n, _ := c.nodes.Find(types.NamespacedName{Name: c.o.NodeName})
	if n == nil {
		return ""
	}
	return strings.Join(n.Spec.PodCIDRs, ",")
}
