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
		if a, ok := f.in.InFlight[subject].(RunPreStop); ok {
			d.addAction(a)
		}
	}
}

// waitRuntimeReachable starts no action while the runtime does not respond. Actions in progress
// continue, because they may succeed. For example, a pull must not be canceled because the
// containers could not be listed in time.
func (f *facts) waitRuntimeReachable(d *Decision) {
	d.Why = f.in.Node.RuntimeMessage
	if f.in.Desired == nil {
		f.keepHooks(d)
		return
	}
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		d.addAction(f.in.InFlight[subject])
	}
}

// isNotAdmitted reports whether the desired version must wait until it is admitted. It returns
// false if there is a successor, because then the desired version was admitted before.
func (f *facts) isNotAdmitted() bool {
	switch {
	case f.in.Successor != nil, f.in.Verdict.Answer == Admit, f.current != nil && f.current.Ready:
		return false
	case f.in.Desired.Traits.FailsIfRejected:
		return !f.wasAdmitted()
	}
	return !f.keepsSize()
}

// wasAdmitted reports whether a pod of a cluster was admitted before, so that it is not checked
// again. Neither the directory nor the stopped sandbox of the pod proves its admission, because podd
// may have created them before the last boot. As in a kubelet, such a pod is admitted again.
func (f *facts) wasAdmitted() bool {
	return f.current != nil && IsLive(f.current) || f.in.Verdict.IsResize
}

func (f *facts) waitAdmission(d *Decision) {
	d.Why, d.Reason = f.in.Verdict.Message, f.in.Verdict.Reason
	d.NeedsUser = f.in.Verdict.needsUser()
	d.BlockedByPods = f.in.Verdict.BlockedByPods
	d.Failure = Failure{Reason: d.Reason, Message: d.Why, IsFinal: d.NeedsUser && !d.BlockedByPods}
}

func (f *facts) isRuntimeNotReady() bool {
	return !f.in.Node.RuntimeReady && (f.current == nil || !f.current.Ready)
}

func (f *facts) waitRuntimeReady(d *Decision) {
	d.Why, d.NeedsUser = f.in.Node.RuntimeMessage, true
	f.prefetchImages(d)
}

func (f *facts) isNetworkNotReady() bool {
	return !f.in.Node.NetworkReady && !f.in.Desired.Object.Spec.HostNetwork && (f.current == nil || !f.current.Ready)
}

func (f *facts) waitNetwork(d *Decision) {
	d.Why, d.NeedsUser, d.Reason = f.in.Node.NetworkMessage, true, "NetworkNotReady"
	f.prefetchImages(d)
}

// mayHaveFinished reports whether the journal of the pod cannot be read, so that the pod may have
// finished. This is possible if the runtime has no container of the pod, and some of the pod's
// containers are not always restarted.
func (f *facts) mayHaveFinished() bool {
	if f.in.JournalError == "" || f.current != nil && f.current.Ready {
		return false
	}
	if slices.ContainsFunc(f.desiredIncarnations, func(inc runtime.Incarnation) bool { return len(inc.Containers) > 0 }) {
		return false
	}
	return slices.ContainsFunc(f.containers, func(m containerFacts) bool { return f.restartPolicy(&m) != v1.RestartPolicyAlways })
}

func (f *facts) waitJournal(d *Decision) {
	d.NeedsUser = true
	d.Why = "the pod may have finished already: " + f.in.JournalError + "; repair the journal, or remove it to run the pod"
}
