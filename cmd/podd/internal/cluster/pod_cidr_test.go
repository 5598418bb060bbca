package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

func TestCluster_PodCIDR(t *testing.T) {
	c := New(Options{NodeName: "n1"})
	if got := c.PodCIDR(); got != "" {
		t.Errorf("PodCIDR without a Node: got %q, want \"\"", got)
	}
	n := clustertest.NewNodeWithUID("u1")
	for _, test := range []struct {
		cidrs []string
		want  string
	}{
		{nil, ""},
		{[]string{"10.0.0.0/24"}, "10.0.0.0/24"},
		{[]string{"10.0.0.0/24", "fd00::/64"}, "10.0.0.0/24,fd00::/64"},
	} {
		n.Spec.PodCIDRs = test.cidrs
		c.nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: n, {Name: "n2"}: {Spec: v1.NodeSpec{PodCIDRs: []string{"10.9.0.0/24"}}}}})
		if got := c.PodCIDR(); got != test.want {
			t.Errorf("PodCIDR with the CIDRs %q: got %q, want %q", test.cidrs, got, test.want)
		}
	}
}
