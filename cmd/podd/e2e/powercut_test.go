//go:build e2e

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPowerCutKeepsFinish cuts the power after two jobs have finished, one after the
// other. podd has written the journal of the first again after its end, when it released
// the volumes. Its sync for the end of the last commits the file system's journal, and
// with it the new name of a file whose data may not be on disk. The first does not run
// again, although the runtime has no record of it.
//
// Only with noauto_da_alloc does ext4 not write the data of a file before it commits the
// rename of it over another one. XFS never does; the virtual machine has one.
func TestPowerCutKeepsFinish(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared, "noauto_da_alloc", "commit=300")
	d.start()
	for _, name := range []string{"first", "last"} {
		d.apply(once(d.pod(name, shell("main", note(name+" runs"))), v1.RestartPolicyNever))
		d.untilPod("succeeds", name, inPhase(v1.PodSucceeded))
		d.untilWoundDown(name)
	}
	k.cutPower()
	d.sweep(t.Context())
	d.start()
	d.untilPod("has succeeded still", "first", inPhase(v1.PodSucceeded))
	d.untilWoundDown("first")
	d.untilPod("has succeeded still", "last", inPhase(v1.PodSucceeded))
	d.untilNoted("first runs", "last runs")
}
