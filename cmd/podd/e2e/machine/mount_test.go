//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mounted is the directory that TestMountedManifests bind-mounts on the manifest directory.
const mounted = "/var/lib/machine-manifests"

// mountManifests bind-mounts the directory mounted on the manifest directory. The bind mount does not
// survive a reboot.
func mountManifests(t *testing.T) {
	t.Helper()
	run(t, "mount --bind "+mounted+" "+manifests)
}

// TestMountedManifests starts a pod whose manifest is on a mount. The following power cut removes
// the mount.
func TestMountedManifests(t *testing.T) {
	if err := os.MkdirAll(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	mountManifests(t)
	restart(t)
	if err := os.WriteFile(file("mounted"), []byte(pod("mounted", "", container("mounted", forever, ""))), 0o644); err != nil {
		t.Fatal(err)
	}
	untilReady(t, "mounted")
	eventually(t, "podd has stored the manifest and its mount", checkStoresMount)
	run(t, "sync")
}

// checkStoresMount returns an error unless podd has stored, in the cache of its sources, that a
// manifest is on a mount. The test must wait for this, because podd starts pods before it writes the
// cache.
func checkStoresMount() error {
	indexes, err := filepath.Glob(filepath.Join(stateDir, "sources", "*", "index"))
	if err != nil {
		return err
	}
	for _, path := range indexes {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), `"digest":`) && strings.Contains(string(text), `"mount":true`) {
			return nil
		}
	}
	return fmt.Errorf("cached manifests: got the indexes %q, want one with a manifest on a mount", indexes)
}

// TestManifestsNotMounted checks a pod after a reboot, while the directory with its manifest is not
// mounted. The pod must run from podd's cache, must not be restarted when the directory is mounted
// late, and must stop when its manifest is removed.
func TestManifestsNotMounted(t *testing.T) {
	untilReady(t, "mounted")
	untilReported := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("podd reports the missing mount: %t", want), func() error {
			out, err := system("/payload/podd ps")
			if err == nil && strings.Contains(out, "is not mounted") != want {
				err = fmt.Errorf("podd ps: got %s, want \"is not mounted\" in it: %t", out, want)
			}
			return err
		})
	}
	untilReported(true)
	restart(t) // the new process of podd has not read the directory while it was mounted either
	untilReady(t, "mounted")
	untilReported(true)
	mountManifests(t)
	untilReported(false)
	untilReady(t, "mounted")
	if _, n := starts(t, "mounted"); n != 1 {
		t.Errorf("got %d starts of the container in this boot, want 1", n)
	}
	remove(t, "mounted")
	untilClean(t)
	run(t, "umount "+manifests)
}
