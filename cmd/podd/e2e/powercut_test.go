//go:build e2e

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPowerCut_FinishedJob cuts the power after two jobs have finished one after the other. After that,
// the first job must not run again, although the runtime does not list it.
//
// podd writes the journal of the first job, and replaces this journal when it releases the volumes of
// the job. Then podd syncs the journal of the second job. With this sync the file system also commits
// all renames so far, even if the data of a renamed file is not on disk. If podd did not sync the
// journal of the first job, this journal would be empty after the power cut. ext4 behaves in this way
// only with the mount option noauto_da_alloc. XFS always does; see TestFinish in package machine.
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
