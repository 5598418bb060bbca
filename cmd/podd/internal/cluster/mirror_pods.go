package cluster

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/mirror"
)

// MirrorCount returns the number of mirror pods of this node in the last list or watch of the API
// server.
func (c *Cluster) MirrorCount() int {
	pods, _ := c.pods.Get()
	n := 0
	for _, p := range pods.Items {
		if mirror.IsMirror(p) {
			n++
		}
	}
	return n
}

// MirrorUID returns the UID of the mirror pod with this key in the last list or watch of the API
// server, or "" if there is no such pod.
func (c *Cluster) MirrorUID(key types.NamespacedName) types.UID {
	pods, _ := c.pods.Get()
	if p := pods.Items[key]; p != nil && mirror.IsMirror(p) {
		return p.UID
	}
	return ""
}
