package claims

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestList_Cluster checks that List omits the claims of a cluster, because their data is not in podd's
// root directory.
func TestList_Cluster(t *testing.T) {
	objectsWithClaim := func(name string, cluster *manifest.Cluster) manifest.Objects {
		key := types.NamespacedName{Namespace: "default", Name: name}
		return manifest.Objects{Claims: map[types.NamespacedName]*v1.PersistentVolumeClaim{key: {}}, Cluster: cluster}
	}
	set := &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"/etc/m": objectsWithClaim("data", nil), "the cluster": objectsWithClaim("remote", &manifest.Cluster{})}}
	if got := List(set); len(got) != 1 || got[0].Claim.Name != "data" {
		t.Errorf("got %+v, want only the claim named \"data\"", got)
	}
}
