package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster"
	"podd/manifest"
	"podd/reconcile"
	"podd/server"
)

// keptClaim makes a root directory with the data of the claim default/data.
func keptClaim(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	bound := filepath.Join(root, "claims", ".bound", "default")
	for _, dir := range []string{bound, filepath.Join(root, "claims", "default", "data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file -", filepath.Join(bound, "data")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestClaimViewsOfACluster: a cluster's claims are none of podd's, whose data it keeps.
func TestClaimViewsOfACluster(t *testing.T) {
	of := func(name string, cluster *manifest.Cluster) manifest.Objects {
		key := types.NamespacedName{Namespace: "default", Name: name}
		return manifest.Objects{Claims: map[types.NamespacedName]*v1.PersistentVolumeClaim{key: {}}, Cluster: cluster}
	}
	set := &manifest.Set{Objects: map[string]manifest.Objects{"/etc/m": of("data", nil), "the cluster": of("theirs", &manifest.Cluster{})}}
	if got := claimViews(set); len(got) != 1 || got[0].Claim.Name != "data" {
		t.Errorf("got %+v", got)
	}
}

// TestVolumesOfARunningPodd: it says which claims are wanted, and no flag need.
func TestVolumesOfARunningPodd(t *testing.T) {
	root := keptClaim(t)
	wanted := []server.ClaimView{{
		Claim: server.Key(types.NamespacedName{Namespace: "default", Name: "data"}), Requested: "1Gi", Path: "/etc/podd/manifests/db.yaml", Line: 7,
	}}
	f := serve(t, &server.View{Revision: 1, Node: "n1", Root: root, Sources: []string{"/etc/podd/manifests"}, Claims: wanted})
	if got := f.podd(t, "volume", "ls"); got.Code != 0 || !strings.Contains(got.Out, "1Gi") || !strings.Contains(got.Out, "db.yaml:7") {
		t.Errorf("ls: %+v", got)
	}
	if got := f.podd(t, "volume", "ls", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"wantedBy": "/etc/podd/manifests/db.yaml:7"`) || !strings.Contains(got.Out, `"requested": "1Gi"`) {
		t.Errorf("ls -o json: %+v", got)
	}
	if got := f.podd(t, "volume", "rm", "-o", "json", "data"); got.Code != codeUsage {
		t.Errorf("rm -o json: %+v", got)
	}
	if got := f.podd(t, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "/etc/podd/manifests/db.yaml:7 wants it") {
		t.Errorf("rm of what is wanted: %+v", got)
	}
	if got := f.podd(t, "volume", "--root-dir", t.TempDir(), "rm", "data"); got.Code != codeUsage || !strings.Contains(got.Err, "no podd runs here") {
		t.Errorf("rm with another root directory: %+v", got)
	}
	f.Publish(&server.View{Revision: 2, Node: "n1", Root: root, Sources: []string{"/a"}, Unread: []string{"/a"}})
	if got := f.podd(t, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "/a was not seen in time") {
		t.Errorf("rm of what may be wanted: %+v", got)
	}
	f.Publish(&server.View{Revision: 3, Node: "n1", Root: root, Sources: []string{cluster.SourceName}, Unread: []string{cluster.SourceName}})
	if got := f.podd(t, "volume", "rm", "data"); got.Code != 0 || !strings.Contains(got.Err, "claim default/data removed") {
		t.Errorf("rm: %+v", got)
	}
}

// TestClaimViews: what is shown of a set's claims.
func TestClaimViews(t *testing.T) {
	text := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}\n"
	f := manifest.Decode([]byte(text), manifest.Options{Source: "/a", Path: "/a/x.yaml", Node: "n"})
	b := manifest.Collect("/a", manifest.KindFile, f)
	v := newViewer(server.View{Sources: []string{"/a"}})
	for _, complete := range []bool{false, true} {
		if unread := v.latest.View().Unread; len(unread) != 1 {
			t.Errorf("unread: %v", unread)
		}
		b.Complete = complete
		v.publish(reconcile.Change{Set: manifest.Merge([]manifest.Batch{b}), SetChanged: true})
	}
	if unread := v.latest.View().Unread; len(unread) > 0 {
		t.Errorf("unread once it was: %v", unread)
	}
	got := v.latest.View().Claims
	if len(got) != 1 || got[0].Claim.String() != "default/data" || got[0].Requested != "2Gi" || got[0].Path != "/a/x.yaml" || got[0].Line != 1 {
		t.Errorf("%+v", got)
	}
}
