package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

func (f *facts) endLost(d *Decision) {
	d.Why = "the sandbox is not ready"
	if len(f.cur.ID) > 0 {
		f.clean(d, StopSandbox{ID: f.cur.ID, Why: SandboxLost})
	} else {
		f.removeRecords(d, f.cur)
	}
}

func (f *facts) prepare(d *Decision) {
	f.prepareVolumes(d)
	fail := f.in.History.Sandbox
	switch {
	case !f.in.History.VolumesReady && f.volumesFirst():
	case f.in.Now.Before(fail.Until):
		d.Why, d.Problem, d.Reason, d.Failure = fail.Message, true, fail.Reason, fail
		d.wakeAt(fail.Until)
	case f.in.Unseen: // what the runtime has of this name is being looked at
	default:
		d.do(RunSandbox{Attempt: f.nextAttempt()})
	}
	f.prefetch(d)
}

func (f *facts) prepareVolumes(d *Decision) {
	if f.in.History.VolumesReady {
		return
	}
	fail := f.in.History.Volumes
	if f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(PrepareVolumes{UID: f.in.Desired.UID})
	if fail.Message != "" { // a server may take its time to fail again
		d.Why, d.Problem = fail.Message, true
	}
}

// volumesFirst says that a sandbox waits for the pod's volumes, as with a kubelet: it is
// not known how long a driver or a server takes, and meanwhile it would hold an address.
// A claim may be of theirs. What this machine alone can do takes no longer than the
// sandbox, and is done beside it.
func (f *facts) volumesFirst() bool {
	return slices.ContainsFunc(f.in.Desired.Spec.Spec.Volumes, func(v v1.Volume) bool {
		own := v.Ephemeral != nil && !ofCluster(f.in.Desired) // a directory, as an emptyDir
		return !own && v.EmptyDir == nil && v.HostPath == nil && v.ConfigMap == nil && v.Secret == nil &&
			v.DownwardAPI == nil && v.Projected == nil && v.Image == nil
	})
}

// preparesVolumes says that preparing them is to be done, or waited for.
func (f *facts) preparesVolumes(d *Decision) bool {
	return f.in.Now.Before(f.in.History.Volumes.Until) || d.prepares()
}

func (d *Decision) prepares() bool {
	return slices.ContainsFunc(d.Actions, func(a Action) bool { _, is := a.(PrepareVolumes); return is })
}

// nextAttempt is above that of every sandbox seen with the UID.
func (f *facts) nextAttempt() uint32 {
	var n uint32
	for _, inc := range f.in.Observed {
		if inc.UID == f.in.Desired.UID && inc.ID != "" {
			n = max(n, inc.Attempt+1)
		}
	}
	return n
}

func (f *facts) initPending() bool {
	for i := range f.members {
		if m := &f.members[i]; m.kind != Regular && !f.initSatisfied(m) {
			return true
		}
	}
	return false
}
