package plan

import (
	"strings"

	"podd/manifest"
	"podd/runtime"
)

// resized: it runs in another size than it is to have, or nobody knows.
func (f *facts) resized(m *member) bool {
	return m.is(runtime.Running) && (f.unsure(m) || differ(f.sizeOf(m), f.in.Desired.Containers[m.spec.Name].Size))
}

func (f *facts) unsure(m *member) bool {
	return strings.HasPrefix(f.in.History.Sizes[m.last.ID], unsure)
}

// differ: what tells no size was not made by a podd that could change it.
func differ(has, wants string) bool { return has != "" && has != wants }

func (f *facts) sizeOf(m *member) string {
	return sizeOf(f.in.History.Sizes, m.last.ID, m.last.Annotations)
}

func (f *facts) resizedByRestart(m *member) bool {
	return f.resized(m) && manifest.RestartsToResize(m.spec, f.sizeOf(m), f.in.Desired.Containers[m.spec.Name].Size)
}

func stopToResize(f *facts, m *member, d *Decision, s *Step) {
	s.Why, d.Yields = f.fromTo(m), true
	f.endOwn(d, m, term{grace: graceOf(f.cur), why: "to resize it", again: true})
}

// resize goes on with its probes: it runs meanwhile, and if it fails.
func resize(f *facts, m *member, d *Decision, s *Step) {
	if unstarted(f, m) {
		f.attempt(m, d, Startup)
	} else {
		f.watch(m, d)
	}
	s.Why, d.Yields = f.fromTo(m), true
	if fail := m.hist.Resize; f.in.Now.Before(fail.Until) {
		s.Why, s.Problem, s.Until, s.Failure = fail.Message, true, fail.Until, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(ResizeContainer{Container: m.spec.Name, ID: m.last.ID})
}

func (f *facts) fromTo(m *member) string {
	if f.unsure(m) {
		return "to " + f.in.Desired.Containers[m.spec.Name].Size + "; what it has is not certain"
	}
	return "from " + f.sizeOf(m) + " to " + f.in.Desired.Containers[m.spec.Name].Size
}

// resizePod brings the pod's cgroup to the size of all its containers once each
// of them has its own: until then it has room for both sizes.
func (f *facts) resizePod(d *Decision) {
	if f.unadmitted() || !differ(f.podSize(), f.in.Desired.PodSize()) {
		return
	}
	for i := range f.members {
		if f.resized(&f.members[i]) {
			return
		}
	}
	if fail := f.in.History.ResizePod; f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(ResizePod{SandboxID: f.cur.ID})
}

func (f *facts) podSize() string {
	return sizeOf(f.in.History.Sizes, f.cur.ID, f.cur.Annotations)
}

// unadmitted: the node has no room for the sizes that are written.
func (f *facts) unadmitted() bool {
	if f.in.Successor != nil || f.in.Verdict.Answer == Admit {
		return false
	}
	return f.in.Desired != f.wanted || f.cur != nil && differ(f.podSize(), f.wanted.PodSize())
}

func (f *facts) tellUnresized(d *Decision) {
	if f.unadmitted() {
		d.Reason = f.in.Verdict.Reason
		d.Why, d.Problem = "the resize waits: "+f.in.Verdict.Message+"; it runs on with what it has", f.in.Verdict.Answer == Reject
	}
}

// sizeless: it was never made, and may not be as it is written.
func (f *facts) sizeless(m *member) bool {
	return f.unadmitted() && m.last == nil && m.attempt == 0
}

func waitSize(f *facts, m *member, d *Decision, s *Step) {
	s.Reason, s.Why, s.Problem = f.in.Verdict.Reason, f.in.Verdict.Message, f.in.Verdict.Answer == Reject
}

// keepsSize: what ran before it was edited starts again as it was.
func (f *facts) keepsSize() bool {
	if !f.unadmitted() {
		return false
	}
	has := Sizes(f.wanted, f.in.Observed, f.in.History.Sizes, false)
	for i := range f.members {
		if has[f.members[i].spec.Name] == "" {
			return false
		}
	}
	return true
}
