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

// untilReadAgain waits until podd reports no problem with reading manifests.
func (d *daemon) untilReadAgain() {
	d.t.Helper()
	d.until("podd reports no problem with reading the manifests", func(v *server.View) error {
		for _, p := range problems(v) {
			if strings.Contains(p, "reading manifests") {
				return fmt.Errorf("got problem %q, want none about reading manifests", p)
			}
		}
		return nil
	})
}

// TestManifestsOnMount puts manifests on a file system that is not mounted when podd starts, is
// mounted later, is unmounted and is mounted again. The pods must keep running. They must stop
// only when their manifests are removed, or when a user accepts the directory without manifests.
func TestManifestsOnMount(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	k := newLoopDisk(d, filepath.Join(d.dir, "manifests.img"), d.manifestDir(), "defaults", 8<<20)
	k.mount()
	d.start()
	// The test does not use d.write, because it would fail to rename a file to another file system.
	for _, name := range []string{"web", "other"} {
		if err := os.WriteFile(d.manifestFile(name), []byte(manifestText(d, d.pod(name, shell("main", serve(name))))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.untilApplied("web")
	d.untilApplied("other")
	web, other := d.container("web", "main"), d.container("other", "main")
	checkContainers := func(when string) {
		t.Helper()
		if now := d.container("web", "main"); now != web {
			t.Errorf("%s: container of pod web: got %+v, want %+v", when, now, web)
		}
		if now := d.container("other", "main"); now != other {
			t.Errorf("%s: container of pod other: got %+v, want %+v", when, now, other)
		}
	}

	d.untilStored("web")
	d.untilStored("other")
	d.kill()
	k.unmount()
	for range 2 { // the second podd must not depend on what the first one has read
		d.start()
		d.untilProblem(d.manifestDir(), "the file system with the manifests is not mounted", "using the last valid content")
		checkContainers("podd started without the mount")
		d.kill()
	}
	d.start()
	k.mount()
	d.untilReadAgain()
	checkContainers("mounted after podd's start")

	k.unmount()
	d.untilProblem(d.manifestDir(), "is not mounted")
	checkContainers("unmounted while podd runs")
	k.mount()
	d.untilReadAgain()
	checkContainers("mounted again")

	// While the file system is mounted, a pod stops when its manifest is removed.
	d.remove("other")
	d.untilGone("other")
	if now := d.container("web", "main"); now != web {
		t.Errorf("after the removal of pod other: container of pod web: got %+v, want %+v", now, web)
	}

	k.unmount()
	d.untilProblem(d.manifestDir(), "is not mounted", "podd accept empty "+d.manifestDir())

	// The file system is not mounted, so this manifest is in the directory that the mount covers. The pod
	// web must keep running, although its manifest is missing there.
	d.apply(d.pod("stray", shell("main", serve("stray"))))
	d.untilApplied("stray")
	d.untilProblem(d.manifestDir(), "is not mounted, and 1 manifest is missing", "podd accept empty "+d.manifestDir())
	if now := d.container("web", "main"); now != web {
		t.Errorf("after a manifest was added without the mount: container of pod web: got %+v, want %+v", now, web)
	}
	d.remove("stray")
	d.untilGone("stray")
	if _, stderr := d.verb("accept", "empty", d.manifestDir()); !strings.Contains(stderr, " accepted; podd stops the pods") {
		t.Errorf("podd accept: got %q, want %q in it", stderr, " accepted; podd stops the pods")
	}
	d.untilGone("web")
	d.untilReadAgain()
}
