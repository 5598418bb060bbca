package plan

import (
	"cmp"
	"slices"

	"podd/manifest"
	"podd/runtime"
)

// Next returns the decision for an Input. It does not modify the data of the Input. Equal inputs
// result in equal decisions.
func Next(in Input) Decision {
	desired := in.Desired
	in.Desired = WithAllocatedSizes(&in)
	f := newFacts(&in)
	f.desired = desired
	r := f.podRule()
	d := Decision{Rule: r.id, Phase: r.phase}
	f.applyAdditionalRules(&d, true)
	r.then(f, &d)
	f.applyAdditionalRules(&d, false)
	d.Releasing = d.Releasing || d.Phase == PhaseStop || f.in.Desired == nil && f.in.SourcesRead
	return d
}

// podRule returns the first pod rule with a true condition. The condition of the last rule is
// always true.
func (f *facts) podRule() *podRule {
	i := slices.IndexFunc(podRules, func(r podRule) bool { return r.when(f) })
	return &podRules[i]
}

// hasSuccessor reports whether a newer version may replace the desired version now.
func (f *facts) hasSuccessor(*Decision) bool {
	return f.in.Successor != nil && f.in.Node.RuntimeReachable && !f.in.Node.ShuttingDown
}

// hasEditDuringShutdown reports whether a newer version waits because the node is shutting down.
func (f *facts) hasEditDuringShutdown(*Decision) bool {
	return f.in.Successor != nil && f.in.Node.RuntimeReachable && f.in.Node.ShuttingDown
}

func (f *facts) waitShutdown(d *Decision) { d.explainEdit("the node is shutting down") }

// replaceOrPrepare sets d.UseSuccessor as soon as the newer version can start. Before that, it
// pulls the images of the newer version while the version in force runs.
func (f *facts) replaceOrPrepare(d *Decision) {
	waitReason, problem := f.whySuccessorWaits(d)
	waitReason, problem = f.whyNotReplaced(d, waitReason, problem)
	if waitReason == "" || !f.shouldRunUntilReplaced(d) || f.in.Successor.Traits.DeletedOnlyBySource { // a pod with the trait DeletedOnlyBySource is replaced at once, because it has a successor only after its source has deleted it
		d.UseSuccessor = true
		d.Actions = nil
		return
	}
	d.explainEdit(waitReason)
	d.NeedsUser = problem
}

// shouldRunUntilReplaced reports whether the version in force keeps running until its successor can
// start. It returns false if the version in force has never run or has finished.
func (f *facts) shouldRunUntilReplaced(d *Decision) bool {
	if d.Phase == PhaseCleanedUp || d.Phase == PhaseWindDown {
		return false
	}
	if f.current != nil && slices.ContainsFunc(f.current.Containers, wasStarted) {
		return true
	}
	// If the sandbox was lost, only the history contains the exits of its containers.
	for i := range f.containers {
		if f.containers[i].history.LastExit != nil {
			return true
		}
	}
	return false
}

// wasStarted reports whether a container was started.
func wasStarted(c runtime.Container) bool { return c.State != runtime.Created }

// whyNodeWaits returns why the node cannot start version p now; "" if the node can start it.
func (f *facts) whyNodeWaits(p *manifest.Pod) string {
	switch n := &f.in.Node; {
	case !n.RuntimeReady:
		return cmp.Or(n.RuntimeMessage, "the runtime is not ready")
	case !n.NetworkReady && !p.Object.Spec.HostNetwork:
		return cmp.Or(n.NetworkMessage, "the pod network is not ready")
	}
	return ""
}

// whyNotReplaced returns why the newer version cannot replace the running version, or "" if it can.
// isProblem reports whether a user must act. waitReason and problem are the results of
// whySuccessorWaits. If admission has rejected the newer version, whyNotReplaced returns the
// message of the verdict. Otherwise it returns waitReason and problem. It sets d.Releasing if
// waitReason is "".
func (f *facts) whyNotReplaced(d *Decision, waitReason string, problem bool) (why string, isProblem bool) {
	d.Releasing = waitReason == ""
	if f.in.Verdict.Answer == Reject {
		return f.in.Verdict.Message, f.in.Verdict.needsUser()
	}
	return waitReason, problem
}

// whySuccessorWaits returns why the newer version cannot start yet, or "" if it can. isProblem
// reports whether a user must act. whySuccessorWaits adds actions to d that pull missing images and
// check the volumes.
func (f *facts) whySuccessorWaits(d *Decision) (why string, isProblem bool) {
	spec := &f.in.Successor.Object.Spec
	for _, cs := range containersOf(spec) {
		img := f.in.History.SuccessorImages[cs.Name]
		switch {
		case img.Name == cs.Image && img.Ref != "":
			continue
		case img.Name == cs.Image && img.Failure.Message != "":
			why, isProblem = img.Failure.Message, true
		case why == "":
			why = "pulling image " + cs.Image
		}
		d.addImagePull(f.in, cs, img, true)
	}
	if f.in.SuccessorObjects.MissingMessage != "" {
		why, isProblem = f.in.SuccessorObjects.MissingMessage, true
	} else if volumeReason, volumeProblem := f.whyVolumesWait(d, f.in.Successor); volumeReason != "" {
		why, isProblem = cmp.Or(why, volumeReason), isProblem || volumeProblem
	}
	if nodeReason := f.whyNodeWaits(f.in.Successor); nodeReason != "" {
		return nodeReason, true
	}
	return why, isProblem
}

// whyVolumesWait returns why the volumes or seccomp profiles of version p are not available, or ""
// if they are. isProblem reports whether a user must act. If p was not checked yet, or if another
// check is due, whyVolumesWait adds a CheckVolumes action to d.
func (f *facts) whyVolumesWait(d *Decision, p *manifest.Pod) (why string, isProblem bool) {
	if !manifest.NeedsPreparedFiles(p) {
		return "", false
	}
	var fail Failure
	if c := &f.in.History.VolumeCheck; c.isFor(p) {
		if fail = c.Failure; fail.Message == "" {
			return "", false
		}
	}
	if f.in.Now.Before(fail.RetryAt) {
		d.wakeAt(fail.RetryAt)
	} else {
		d.addAction(CheckVolumes{UID: p.UID, Hash: p.Hash})
	}
	return cmp.Or(fail.Message, "checking its volumes"), fail.Message != ""
}
