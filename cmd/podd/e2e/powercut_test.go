//go:build e2e

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPowerCutKeepsFinish cuts the power after two jobs have finished one after the other. podd
// has written the journal of the first job again after its end, when it released the volumes.
// Its sync for the end of the last job commits the file system's journal, and with it the
// rename of a file whose data may not be on disk. The first job must not run again, although
// the runtime has no record of it.
//
// Only with noauto_da_alloc does ext4 commit the rename of a file over another one before it
// writes the data. XFS always does; the virtual machine has an XFS.
func TestPowerCutKeepsFinish(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared, "noauto_da_alloc", "commit=300")
	d.start()
	for _, name := range []string{"first", "last"} {
		d.apply(withRestartPolicy(d.pod(name, shell("main", note(name+" runs"))), v1.RestartPolicyNever))
		d.untilPod("succeeds", name, inPhase(v1.PodSucceeded))
		d.untilWoundDown(name)
	}
	k.cutPower()
	d.sweep(t.Context())
	d.start()
	d.untilPod("is still succeeded", "first", inPhase(v1.PodSucceeded))
	d.untilWoundDown("first")
	d.untilPod("is still succeeded", "last", inPhase(v1.PodSucceeded))
	d.untilNoted("first runs", "last runs")
}
