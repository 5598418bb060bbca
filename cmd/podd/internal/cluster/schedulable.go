package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// followSchedulable calls Options.OnSchedulable when the Node becomes unschedulable or schedulable. It
// returns when ctx is done. Like the kubelet, podd assumes at its start that the Node is schedulable.
func (c *Cluster) followSchedulable(ctx context.Context) {
	if c.o.OnSchedulable == nil {
		return
	}
	isUnschedulable := false
	for {
		n, changed := c.nodes.Find(types.NamespacedName{Name: c.o.NodeName})
		if n != nil && n.Spec.Unschedulable != isUnschedulable {
			isUnschedulable = n.Spec.Unschedulable
			c.o.OnSchedulable(!isUnschedulable)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
