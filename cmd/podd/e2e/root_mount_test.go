//go:build e2e

package e2e

import "testing"

// TestRootDirectory_MountedLate starts podd on the empty mount point of its root directory. Then the
// file system with podd's earlier state is mounted there. The running podd is a new instance. It must
// exit, because otherwise it would write into the directory of the earlier instance. After its next
// start, podd must find the pods that run.
func TestRootDirectory_MountedLate(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared)
	d.start()
	d.apply(d.pod("web", shell("main", singletonScript("web"))))
	d.untilApplied("web")
	d.untilNoted("web runs")
	was, instance := d.container("web", "main"), d.instanceLabel()

	d.kill()
	k.hide()
	d.start()
	d.untilProblem("web", "--adopt-instance="+instance)
	k.show()
	d.untilExited(d.root(), "mounted", "restart podd")

	d.start()
	d.untilApplied("web")
	d.untilNoProblems()
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of web after the mount: got %+v, want %+v", now, was)
	}
	d.untilNoted("web runs")
}
