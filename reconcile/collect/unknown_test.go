package collect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestUnknown checks which logs and links may belong to unknown pods, and that only dead links are removed.
func TestUnknown(t *testing.T) {
	l := newLogs(t, "default_web_u1/c/0.log", "other/c/0.log", "a_b_c_u3/c/0.log")
	for range 2 { // the second time with links
		want := []types.UID{"u1"}
		if len(names(t, l.LinkDir)) > 0 {
			want = []types.UID{"u1", "u2"}
		}
		uids, err := l.ListUIDs()
		must(t, err)
		if diff := cmp.Diff(want, sets.List(uids)); diff != "" {
			t.Errorf("UIDs (-want +got):\n%s", diff)
		}
		dead, err := l.ListDeadLinks()
		must(t, err)
		if len(names(t, l.LinkDir)) > 0 {
			if diff := cmp.Diff([]string{"docker.log", "relative.log"}, sets.List(dead)); diff != "" {
				t.Errorf("dead links (-want +got):\n%s", diff)
			}
		} else if len(dead) > 0 {
			t.Errorf("no links: got dead links %q, want none", sets.List(dead))
		}
		must(t, os.MkdirAll(l.LinkDir, 0o755))
		alive := filepath.Join(t.TempDir(), "alive")
		must(t, os.WriteFile(alive, nil, 0o644))
		for name, to := range map[string]string{
			"web.log":      l.Dir + "/default_web_u1/c/0.log",
			"gone.log":     l.Dir + "/default_gone_u2/c/0.log",
			"docker.log":   "/var/lib/docker/containers/podd-test/podd-test-json.log",
			"relative.log": "podd-test-none",
			"docker.txt":   "/var/lib/docker/containers/podd-test/podd-test-json.log",
			"alive.log":    alive,
		} {
			os.Remove(filepath.Join(l.LinkDir, name))
			must(t, os.Symlink(to, filepath.Join(l.LinkDir, name)))
		}
		must(t, os.WriteFile(filepath.Join(l.LinkDir, "file.log"), nil, 0o644))
	}
	for _, name := range []string{"docker.log", "alive.log", "file.log", "../containers/relative.log", "none.log"} {
		must(t, l.RemoveDeadLink(name))
	}
	if diff := cmp.Diff([]string{"alive.log", "docker.txt", "file.log", "gone.log", "relative.log", "web.log"}, names(t, l.LinkDir)); diff != "" {
		t.Errorf("links after the removal (-want +got):\n%s", diff)
	}
	must(t, Logs{Dir: l.Dir}.RemoveDeadLink("web.log"))
}
