package plan

import (
	"slices"

	"podd/manifest"
	"podd/runtime"
)

// needsResize reports whether a container runs and its size differs, or may differ, from its
// allocated size.
func (f *facts) needsResize(m *containerFacts) bool {
	return m.hasState(runtime.Running) && f.recordedSize(m).differs(f.in.Desired.ContainerHashes[m.spec.Name].Resources)
}

// recordedSize returns the size of m.last.
func (f *facts) recordedSize(m *containerFacts) Size {
	return recordedSize(f.in.History.Sizes, m.last.ID, m.last.Annotations)
}

// needsRestartToResize reports whether the container must be restarted to be resized.
func (f *facts) needsRestartToResize(m *containerFacts) bool {
	return f.needsResize(m) && manifest.RestartsToResize(m.spec, f.recordedSize(m).Value, f.in.Desired.ContainerHashes[m.spec.Name].Resources)
}

func stopToResize(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why, d.Releasing = f.describeResize(m), true
	f.beginStop(d, m, stopBudget{grace: graceOf(f.current), why: "to resize it", willRestart: true})
}

// resize resizes a running container, and continues its probes.
func resize(f *facts, m *containerFacts, d *Decision, s *Step) {
	if isUnstarted(f, m) {
		f.scheduleProbe(m, d, StartupProbe)
	} else {
		f.probeStartedContainer(m, d)
	}
	s.Why, d.Releasing = f.describeResize(m), true
	if fail := m.history.ResizeFailure; f.in.Now.Before(fail.RetryAt) {
		s.Why, s.NeedsUser, s.Until, s.Failure = fail.Message, true, fail.RetryAt, fail
		d.wakeAt(fail.RetryAt)
		return
	}
	d.addAction(ResizeContainer{Container: m.spec.Name, ID: m.last.ID})
}

// describeResize returns the actual and the desired size of a container for messages.
func (f *facts) describeResize(m *containerFacts) string {
	actual, desired := f.recordedSize(m), f.in.Desired.ContainerHashes[m.spec.Name].Resources
	if actual.Uncertain {
		return "to " + desired + "; podd does not know its current size"
	}
	return "from " + actual.Value + " to " + desired
}

// needsPodResize reports whether the cgroup of the pod must be resized. This is the case if all
// containers have their allocated sizes, but the cgroup does not have the pod's size.
func (f *facts) needsPodResize(d *Decision) bool {
	if !f.containerRulesApply(d) || f.isSizeUnadmitted() || !f.podSize().differs(f.in.Desired.PodSize()) {
		return false
	}
	return !slices.ContainsFunc(f.containers, func(m containerFacts) bool { return f.needsResize(&m) })
}

func (f *facts) resizePod(d *Decision) {
	if fail := f.in.History.ResizePodFailure; f.in.Now.Before(fail.RetryAt) {
		d.Why, d.NeedsUser, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.RetryAt)
		return
	}
	d.addAction(ResizePod{SandboxID: f.current.ID})
}

// podSize returns the recorded size of the current sandbox.
func (f *facts) podSize() Size {
	return recordedSize(f.in.History.Sizes, f.current.ID, f.current.Annotations)
}

// isSizeUnadmitted reports whether the node does not admit the desired sizes.
func (f *facts) isSizeUnadmitted() bool {
	if f.in.Successor != nil || f.in.Verdict.Answer == Admit {
		return false
	}
	return f.in.Desired != f.desired || f.current != nil && f.podSize().differs(f.desired.PodSize())
}

func (f *facts) isResizeNotAdmitted(d *Decision) bool {
	return f.containerRulesApply(d) && f.isSizeUnadmitted()
}

func (f *facts) showUnadmitted(d *Decision) {
	d.Reason = f.in.Verdict.Reason
	d.Why, d.NeedsUser = "the node does not admit the new size of the pod: "+f.in.Verdict.Message+"; the pod keeps its current size", f.in.Verdict.needsUser()
}

// hasNoAdmittedSize reports whether the container was never created and the node does not admit its
// desired size.
func (f *facts) hasNoAdmittedSize(m *containerFacts) bool {
	return f.isSizeUnadmitted() && m.last == nil && m.attempt == 0
}

func waitSize(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason, s.Why, s.NeedsUser = f.in.Verdict.Reason, f.in.Verdict.Message, f.in.Verdict.needsUser()
}

// keepsSize reports whether the desired sizes are not admitted and the pod may be started with the
// sizes that all its containers had before.
func (f *facts) keepsSize() bool {
	if !f.isSizeUnadmitted() {
		return false
	}
	sizes := ContainerSizes(f.desired, f.in.Observed, f.in.History.Sizes, false)
	for i := range f.containers {
		if sizes[f.containers[i].spec.Name] == "" {
			return false
		}
	}
	return true
}
