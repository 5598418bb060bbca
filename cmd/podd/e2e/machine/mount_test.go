//go:build vm

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mounted is the directory that TestMountedManifests mounts at that of the manifests.
const mounted = "/var/lib/machine-manifests"

// mountManifests mounts the directory, which no boot does.
func mountManifests(t *testing.T) {
	t.Helper()
	run(t, "mount --bind "+mounted+" "+manifests)
}

// TestMountedManifests starts a pod of a manifest on a mount. The power cut that follows
// unmounts it.
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
	eventually(t, "podd has stored the manifest and its mount", storesMount)
	run(t, "sync")
}

// storesMount returns an error unless podd has a manifest in its cache that is on a mount. podd
// does not delay a pod until then.
func storesMount() error {
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
	return fmt.Errorf("none of %q has one", indexes)
}

// TestManifestsNotMounted: the pod runs after a reboot although the directory of its
// manifest is empty, and it is not restarted when the mount comes late. It ends when its
// manifest is removed.
func TestManifestsNotMounted(t *testing.T) {
	untilReady(t, "mounted")
	problem := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("podd reports the missing mount: %t", want), func() error {
			out, err := system("/payload/podd ps")
			if err == nil && strings.Contains(out, "is not mounted") != want {
				err = fmt.Errorf("podd ps prints %s", out)
			}
			return err
		})
	}
	problem(true)
	restart(t) // this podd has never read the directory as the mount
	untilReady(t, "mounted")
	problem(true)
	mountManifests(t)
	problem(false)
	untilReady(t, "mounted")
	if _, n := starts(t, "mounted"); n != 1 {
		t.Errorf("the container started %d times in this boot", n)
	}
	remove(t, "mounted")
	untilClean(t)
	run(t, "umount "+manifests)
}
