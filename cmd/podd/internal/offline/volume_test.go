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

// rootWithClaim creates a root directory with the data of the claim default/data.
func rootWithClaim(t *testing.T) (root string) {
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

// TestVolume_RunningPodd checks that the running podd determines the desired claims,
// without flags.
func TestVolume_RunningPodd(t *testing.T) {
	root := rootWithClaim(t)
	wanted := []server.ClaimView{{
		Claim: server.Key(types.NamespacedName{Namespace: "default", Name: "data"}), Requested: "1Gi", Path: "/etc/podd/manifests/db.yaml", Line: 7,
	}}
	f := poddtest.Serve(t, &server.View{Revision: 1, Node: "n1", Root: root, Sources: []string{"/etc/podd/manifests"}, Claims: wanted})
	if got := podd(t, f, "volume", "ls"); got.Code != 0 || !strings.Contains(got.Out, "1Gi") || !strings.Contains(got.Out, "db.yaml:7") {
		t.Errorf("ls: %+v", got)
	}
	if got := podd(t, f, "volume", "ls", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"wantedBy": "/etc/podd/manifests/db.yaml:7"`) || !strings.Contains(got.Out, `"requested": "1Gi"`) {
		t.Errorf("ls -o json: %+v", got)
	}
	if got := podd(t, f, "volume", "rm", "-o", "json", "data"); got.Code != exit.Usage {
		t.Errorf("rm -o json: %+v", got)
	}
	if got := podd(t, f, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "/etc/podd/manifests/db.yaml:7 wants it") {
		t.Errorf("rm of what is wanted: %+v", got)
	}
	if got := podd(t, f, "volume", "--root-dir", t.TempDir(), "rm", "data"); got.Code != exit.Usage || !strings.Contains(got.Err, "no podd runs here") {
		t.Errorf("rm with another root directory: %+v", got)
	}
	f.Publish(&server.View{Revision: 2, Node: "n1", Root: root, Sources: []string{"/a"}, Unread: []string{"/a"}})
	if got := podd(t, f, "volume", "rm", "data"); got.Code == 0 || !strings.Contains(got.Err, "/a was not seen in time") {
		t.Errorf("rm of what may be wanted: %+v", got)
	}
	f.Publish(&server.View{Revision: 3, Node: "n1", Root: root, Sources: []string{server.ClusterSource}, Unread: []string{server.ClusterSource}})
	if got := podd(t, f, "volume", "rm", "data"); got.Code != 0 || !strings.Contains(got.Err, "claim default/data removed") {
		t.Errorf("rm: %+v", got)
	}
}
