package plan

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// keepHooks adds the preStop hooks in progress to d, because a canceled hook would run again.
func (f *facts) keepHooks(d *Decision) {
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		if a, ok := f.in.InFlight[subject].(PreStop); ok {
			d.do(a)
		}
	}
}

// waitRuntime starts no action while the runtime does not respond. Actions in progress continue,
// because they may succeed. For example, a pull must not be canceled because listing the
// containers timed out.
func (f *facts) waitRuntime(d *Decision) {
	d.Why = f.in.Node.Message
	if f.in.Desired == nil {
		f.keepHooks(d)
		return
	}
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		d.do(f.in.InFlight[subject])
	}
}

// notAdmitted reports whether the desired version may not start because it is not admitted. If
// there is a successor, it returns false, because the desired version was admitted before.
func (f *facts) notAdmitted() bool {
	return f.in.Successor == nil && f.in.Verdict.Answer != Admit && (f.cur == nil || !f.cur.Ready) && !f.keepsSize() &&
		!(f.in.Desired.Traits.FailsIfRejected && f.wasAdmitted())
}

// wasAdmitted reports whether a pod of a cluster was admitted before, so that it is not checked
// again. The directory of the pod does not prove its admission, because podd may have created the
// directory before the last boot.
func (f *facts) wasAdmitted() bool { return f.cur != nil || f.in.Verdict.Resize }

func (f *facts) waitAdmission(d *Decision) {
	d.Why, d.Reason = f.in.Verdict.Message, f.in.Verdict.Reason
	d.Problem = f.in.Verdict.Answer == Reject
	d.Failure = Failure{Reason: d.Reason, Message: d.Why, Final: d.Problem}
}

func (f *facts) runtimeNotReady() bool {
	return !f.in.Node.Ready && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitReady(d *Decision) {
	d.Why, d.Problem = f.in.Node.Message, true
	f.prefetch(d)
}

func (f *facts) networkNotReady() bool {
	return !f.in.Node.NetworkReady && !f.in.Desired.Spec.Spec.HostNetwork && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitNetwork(d *Decision) {
	d.Why, d.Problem, d.Reason = f.in.Node.NetworkMessage, true, "NetworkNotReady"
	f.prefetch(d)
}

// mayHaveFinished reports whether the pod may have finished, but its journal cannot be read. The
// pod may have finished if the runtime has no container of the pod, and some of the pod's
// containers are not always restarted.
func (f *facts) mayHaveFinished() bool {
	if f.in.JournalError == "" || f.cur != nil && f.cur.Ready {
		return false
	}
	if slices.ContainsFunc(f.mine, func(inc runtime.Incarnation) bool { return len(inc.Containers) > 0 }) {
		return false
	}
	return slices.ContainsFunc(f.members, func(m member) bool { return f.policy(&m) != v1.RestartPolicyAlways })
}

func (f *facts) waitJournal(d *Decision) {
	d.Problem = true
	d.Why = "the pod may have run before: " + f.in.JournalError + "; repair the journal, or remove it to run the pod"
}
