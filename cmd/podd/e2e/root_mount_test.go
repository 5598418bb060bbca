//go:build e2e

package e2e

import "testing"

// TestRootMountedLate: podd starts on the empty mount point of its root directory. When the
// file system with its state is mounted there, podd ends, because it would write to the
// directory of another instance. The next start finds the pods of before.
func TestRootMountedLate(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared)
	d.start()
	d.apply(d.pod("web", shell("main", single("web"))))
	d.untilApplied("web")
	d.untilNoted("web runs")
	was, instance := d.container("web", "main"), d.instance()

	d.kill()
	k.hide()
	d.start()
	d.untilProblem("web", "--adopt-instance="+instance)
	k.show()
	d.ended(d.root(), "mounted", "restart podd")

	d.start()
	d.untilApplied("web")
	d.noProblems()
	if now := d.container("web", "main"); now != was {
		t.Errorf("after the mount: web is now %+v, was %+v", now, was)
	}
	d.untilNoted("web runs")
}
