//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/server"
)

// untilReadAgain waits until the directory of manifests is no problem any more.
func (d *daemon) untilReadAgain() {
	d.t.Helper()
	d.until("the manifests are read again", func(v *server.View) error {
		for _, p := range problems(v) {
			if strings.Contains(p, "reading manifests") {
				return fmt.Errorf("%s", p)
			}
		}
		return nil
	})
}

// TestManifestsOnMount: pods of manifests on a filesystem that is missing when podd
// starts, appears late, disappears and returns run on, and end when their manifests are
// removed, or when a user accepts the directory without them.
func TestManifestsOnMount(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	k := newLoopDisk(d, filepath.Join(d.dir, "manifests.img"), d.manifests(), "defaults", 8<<20)
	k.mount()
	d.start()
	for _, name := range []string{"web", "other"} { // d.write renames, which no other filesystem allows
		if err := os.WriteFile(d.file(name), []byte(text(d, d.pod(name, shell("main", serve(name))))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.untilApplied("web")
	d.untilApplied("other")
	web, other := d.runs("web", "main"), d.runs("other", "main")
	unchanged := func(when string) {
		t.Helper()
		if now := d.runs("web", "main"); now != web {
			t.Errorf("%s: web is now %+v, was %+v", when, now, web)
		}
		if now := d.runs("other", "main"); now != other {
			t.Errorf("%s: other is now %+v, was %+v", when, now, other)
		}
	}

	d.kill()
	k.unmount()
	for range 2 { // what the first podd found is not what the next one trusts
		d.start()
		d.untilProblem(d.manifests(), "the file system with its manifests is not mounted", "using its last valid content")
		unchanged("missing at podd's start")
		d.kill()
	}
	d.start()
	k.mount()
	d.untilReadAgain()
	unchanged("mounted late")

	k.unmount()
	d.untilProblem(d.manifests(), "is not mounted")
	unchanged("unmounted")
	k.mount()
	d.untilReadAgain()
	unchanged("mounted again")

	// What is removed from the directory itself ends.
	d.remove("other")
	d.untilGone("other")
	if now := d.runs("web", "main"); now != web {
		t.Errorf("after another pod was removed: web is now %+v, was %+v", now, web)
	}

	k.unmount()
	d.untilProblem(d.manifests(), "is not mounted", "podd accept empty "+d.manifests())

	// A manifest on the mount point itself does not end the pods of the others.
	d.apply(d.pod("stray", shell("main", serve("stray"))))
	d.untilApplied("stray")
	d.untilProblem(d.manifests(), "is not mounted, and 1 of its manifests is missing", "podd accept empty "+d.manifests())
	if now := d.runs("web", "main"); now != web {
		t.Errorf("with another manifest: web is now %+v, was %+v", now, web)
	}
	d.remove("stray")
	d.untilGone("stray")
	if _, stderr := d.verb("accept", "empty", d.manifests()); !strings.Contains(stderr, "is taken as it is") {
		t.Errorf("podd accept says %q", stderr)
	}
	d.untilGone("web")
	d.untilReadAgain()
}
