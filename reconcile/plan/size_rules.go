package plan

import (
	"slices"

	"podd/manifest"
	"podd/runtime"
)

// resized reports whether a running container does not have its allocated size, or may not
// have it.
func (f *facts) resized(m *member) bool {
	return m.is(runtime.Running) && f.recordedSize(m).differs(f.in.Desired.Containers[m.spec.Name].Size)
}

func (f *facts) recordedSize(m *member) Size {
	return recordedSize(f.in.History.Sizes, m.last.ID, m.last.Annotations)
}

func (f *facts) resizedByRestart(m *member) bool {
	return f.resized(m) && manifest.RestartsToResize(m.spec, f.recordedSize(m).Value, f.in.Desired.Containers[m.spec.Name].Size)
}

func stopToResize(f *facts, m *member, d *Decision, s *Step) {
	s.Why, d.Releasing = f.fromTo(m), true
	f.beginStop(d, m, stopBudget{grace: graceOf(f.cur), why: "to resize it", restart: true})
}

// resize continues the probes, because the container runs during the resize and after a
// failure.
func resize(f *facts, m *member, d *Decision, s *Step) {
	if unstarted(f, m) {
		f.scheduleProbe(m, d, Startup)
	} else {
		f.probeStarted(m, d)
	}
	s.Why, d.Releasing = f.fromTo(m), true
	if fail := m.hist.Resize; f.in.Now.Before(fail.Until) {
		s.Why, s.Problem, s.Until, s.Failure = fail.Message, true, fail.Until, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(ResizeContainer{Container: m.spec.Name, ID: m.last.ID})
}

func (f *facts) fromTo(m *member) string {
	has, wants := f.recordedSize(m), f.in.Desired.Containers[m.spec.Name].Size
	if has.Uncertain {
		return "to " + wants + "; its current size is uncertain"
	}
	return "from " + has.Value + " to " + wants
}

// podResized reports whether all containers have their sizes and the pod's cgroup does not
// have its size.
func (f *facts) podResized(d *Decision) bool {
	if !f.inSandbox(d) || f.unadmitted() || !f.podSize().differs(f.in.Desired.PodSize()) {
		return false
	}
	return !slices.ContainsFunc(f.members, func(m member) bool { return f.resized(&m) })
}

func (f *facts) resizePod(d *Decision) {
	if fail := f.in.History.ResizePod; f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(ResizePod{SandboxID: f.cur.ID})
}

func (f *facts) podSize() Size {
	return recordedSize(f.in.History.Sizes, f.cur.ID, f.cur.Annotations)
}

// unadmitted reports whether the node does not admit the desired sizes.
func (f *facts) unadmitted() bool {
	if f.in.Successor != nil || f.in.Verdict.Answer == Admit {
		return false
	}
	return f.in.Desired != f.desired || f.cur != nil && f.podSize().differs(f.desired.PodSize())
}

func (f *facts) resizeNotAdmitted(d *Decision) bool { return f.inSandbox(d) && f.unadmitted() }

func (f *facts) showUnadmitted(d *Decision) {
	d.Reason = f.in.Verdict.Reason
	d.Why, d.Problem = "the resize waits: "+f.in.Verdict.Message+"; it keeps its current size", f.in.Verdict.Answer == Reject
}

// hasNoAdmittedSize reports whether the container was never created and its desired size is not
// admitted.
func (f *facts) hasNoAdmittedSize(m *member) bool {
	return f.unadmitted() && m.last == nil && m.attempt == 0
}

func waitSize(f *facts, m *member, d *Decision, s *Step) {
	s.Reason, s.Why, s.Problem = f.in.Verdict.Reason, f.in.Verdict.Message, f.in.Verdict.Answer == Reject
}

// keepsSize reports whether a pod that ran before a resize was requested restarts with its
// old size.
func (f *facts) keepsSize() bool {
	if !f.unadmitted() {
		return false
	}
	has := ContainerSizes(f.desired, f.in.Observed, f.in.History.Sizes, false)
	for i := range f.members {
		if has[f.members[i].spec.Name] == "" {
			return false
		}
	}
	return true
}
