//go:build e2e

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPowerCut_FinishedJob cuts the power after two jobs have finished one after the other. podd
// has written the journal of the first job again when it released the volumes. podd's sync for the
// second job commits the journal of the file system, and with it the rename of a file whose data
// may not be on disk. The first job must not run again, although the runtime does not list it. ext4
// commits a rename over another file before it writes the data only with noauto_da_alloc. XFS
// always does; the virtual machine has an XFS.
func TestPowerCut_FinishedJob(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared, "noauto_da_alloc", "commit=300")
	d.start()
	for _, name := range []string{"first", "last"} {
		d.apply(withRestartPolicy(d.pod(name, shell("main", note(name+" runs"))), v1.RestartPolicyNever))
		d.untilPod("succeeds", name, inPhase(v1.PodSucceeded))
		d.untilWoundDown(name)
	}
	k.cutPower()
	d.removeSandboxes(t.Context())
	d.start()
	d.untilPod("is still succeeded", "first", inPhase(v1.PodSucceeded))
	d.untilWoundDown("first")
	d.untilPod("is still succeeded", "last", inPhase(v1.PodSucceeded))
	d.untilNoted("first runs", "last runs")
}
