package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server"
)

// TestServingAddresses checks that the serving certificate contains the addresses of the View, or those
// that a cloud controller has set in the API server.
func TestServingAddresses(t *testing.T) {
	state := server.NewLatestView(&server.View{Revision: 1})
	c := New(Options{NodeName: "n1"})
	addresses := c.servingAddresses(state)
	if got := addresses(); got != nil {
		t.Errorf("before the View contains a Node: got addresses %v, want none", got)
	}
	local := clustertest.NewLocalNode()
	state.Publish(&server.View{Revision: 2, NodeObject: local})
	if diff := cmp.Diff(local.Status.Addresses, addresses()); diff != "" {
		t.Errorf("without a cloud controller (-want +got):\n%s", diff)
	}
	stored := []v1.NodeAddress{{Type: v1.NodeHostName, Address: "n1"}, {Type: v1.NodeExternalDNS, Address: "n1.example"}}
	c.o.Node.HasExternalCloud = true
	c.nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: {Status: v1.NodeStatus{Addresses: stored}}}})
	if diff := cmp.Diff(stored, addresses()); diff != "" {
		t.Errorf("addresses of a cloud controller (-want +got):\n%s", diff)
	}
}
