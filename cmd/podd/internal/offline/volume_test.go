package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// createRootWithClaim creates a root directory of podd with the data of the claim default/data.
func createRootWithClaim(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	bindings := filepath.Join(root, "claims", ".bound", "default")
	for _, dir := range []string{bindings, filepath.Join(root, "claims", "default", "data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file -", filepath.Join(bindings, "data")); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestVolume_RunningPodd checks that podd volume requests the desired claims from the running podd, if
// no flag selects another root directory.
func TestVolume_RunningPodd(t *testing.T) {
	root := createRootWithClaim(t)
	desired := []server.ClaimView{{
		Claim: server.Key(types.NamespacedName{Namespace: "default", Name: "data"}), Requested: "1Gi", Path: "/etc/podd/manifests/db.yaml", Line: 7,
	}}
	f := poddtest.Serve(t, &server.View{Revision: 1, Node: "n1", RootDir: root, Sources: []string{"/etc/podd/manifests"}, Claims: desired})
	if got := podd(t, f, "volume", "ls"); got.Code != 0 || !strings.Contains(got.Out, "1Gi") || !strings.Contains(got.Out, "db.yaml:7") {
		t.Errorf("ls: got %+v, want the requested size 1Gi, and db.yaml:7 as position of the claim", got)
	}
	if got := podd(t, f, "volume", "ls", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"wantedBy": "/etc/podd/manifests/db.yaml:7"`) || !strings.Contains(got.Out, `"requested": "1Gi"`) {
		t.Errorf("ls -o json: got %+v, want the requested size 1Gi, and db.yaml:7 as position of the claim", got)
	}
	if got := podd(t, f, "volume", "rm", "-o", "json", "data"); got.Code != exit.Usage {
		t.Errorf("rm -o json: got %+v, want a usage error", got)
	}
	if got := podd(t, f, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "it is still defined at /etc/podd/manifests/db.yaml:7") {
		t.Errorf("rm of a desired claim: got %+v, want an error with db.yaml:7 as position of the claim", got)
	}
	if got := podd(t, f, "volume", "--root-dir", t.TempDir(), "rm", "data"); got.Code != exit.Usage || !strings.Contains(got.Err, "podd is not running and no source") {
		t.Errorf("rm with another root directory: got %+v, want a usage error, because the desired claims are unknown", got)
	}
	f.Publish(&server.View{Revision: 2, Node: "n1", RootDir: root, Sources: []string{"/a"}, UnreadSources: []string{"/a"}})
	if got := podd(t, f, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "source /a has not been read yet") {
		t.Errorf("rm with an unread source: got %+v, want the error that the source has not been read", got)
	}
	f.Publish(&server.View{Revision: 3, Node: "n1", RootDir: root, Sources: []string{server.ClusterSource}, UnreadSources: []string{server.ClusterSource}})
	if got := podd(t, f, "volume", "rm", "data"); got.Code != 0 || !strings.Contains(got.Err, "claim default/data removed") {
		t.Errorf("rm with an unread cluster: got %+v, want the claim removed, because local claims do not depend on the cluster", got)
	}
}
