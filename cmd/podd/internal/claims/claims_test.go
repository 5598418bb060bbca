package claims

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestViews_Cluster checks that claims of a cluster are omitted, because their data is
// stored elsewhere.
func TestViews_Cluster(t *testing.T) {
	of := func(name string, cluster *manifest.Cluster) manifest.Objects {
		key := types.NamespacedName{Namespace: "default", Name: name}
		return manifest.Objects{Claims: map[types.NamespacedName]*v1.PersistentVolumeClaim{key: {}}, Cluster: cluster}
	}
	set := &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"/etc/m": of("data", nil), "the cluster": of("remote", &manifest.Cluster{})}}
	if got := List(set); len(got) != 1 || got[0].Claim.Name != "data" {
		t.Errorf("got %+v, want the claim data", got)
	}
}
