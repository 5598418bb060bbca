package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// ephemeralRules see every ephemeral container of a pod whose sandbox is ready;
// the first match wins.
var ephemeralRules []containerRule

func init() {
	ephemeralRules = []containerRule{
		// What has begun is not taken back, whoever forgot why it began.
		{"stop under way -> go on", beingEnded, goOnEnding},
		{"running -> leave", func(f *facts, m *member) bool { return m.is(runtime.Running) }, leaveEphemeral},
		// The runtime lost track of it; ending it makes its state known.
		{"state unknown -> stop", func(f *facts, m *member) bool { return m.is(runtime.Unknown) }, stopUnknown},
		// However it ended: a person asked for it once, and may ask for another.
		{"ended -> leave", func(f *facts, m *member) bool { return m.is(runtime.Exited) }, leaveEphemeral},
		// An interrupted start left it made and never run.
		{"created -> start", func(f *facts, m *member) bool { return m.is(runtime.Created) && !f.starting(m) }, startCreated},
		{"starting -> go on", (*facts).starting, goOnStarting},
		// It was removed, or its sandbox was.
		{"gone -> leave", func(f *facts, m *member) bool { return m.made }, leaveEphemeral},
		{"start failed -> wait", func(f *facts, m *member) bool { return f.in.Now.Before(m.hist.Start.Until) }, waitStart},
		{"image missing -> get it", func(f *facts, m *member) bool { return !m.imagePresent() }, getImage},
		// There are no processes to see yet.
		{"its target does not run -> wait", (*facts).lacksTarget, waitTarget},
		{"volumes missing -> prepare", func(f *facts, m *member) bool { return !f.in.History.VolumesReady }, waitVolumes},
		// It may be there: a second one is worse than a late one.
		{"not looked yet -> wait", func(f *facts, m *member) bool { return f.in.Unseen }, waitTurn},
		{"start", func(*facts, *member) bool { return true }, startEphemeral},
	}
}

// prefetchEphemeral gets the images while the sandbox is made, or waited for.
func (f *facts) prefetchEphemeral(d *Decision) {
	for i := range f.ephemeral {
		m := &f.ephemeral[i]
		s := Step{Container: m.spec.Name, Rule: "not its turn -> wait", Reason: f.comesUp()}
		switch {
		case m.made:
			s.Rule, s.Reason = "gone -> leave", ""
		case !m.imagePresent():
			getImage(f, m, d, &s)
			s.Rule = "image missing -> get it"
		}
		d.Steps = append(d.Steps, s)
	}
}

func goOnStarting(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.comesUp()
	d.do(f.in.InFlight[StartContainer{Container: m.spec.Name}.Subject()])
}

func leaveEphemeral(f *facts, m *member, d *Decision, s *Step) {
	s.Why, s.Problem = m.hist.Image.Warning, m.hist.Image.Warning != ""
}

// lacksTarget: once it is made, it has its namespaces.
func (f *facts) lacksTarget(m *member) bool { return m.target != "" && f.runningID(m.target) == "" }

// runningID is the container of a name that runs; "" for none.
func (f *facts) runningID(name string) string {
	for i := range f.members {
		if m := &f.members[i]; m.spec.Name == name && m.is(runtime.Running) {
			return m.last.ID
		}
	}
	return ""
}

func waitTarget(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.comesUp()
	s.Why = fmt.Sprintf("container %s, whose processes it is to see, does not run", m.target)
}

// startEphemeral has the same number at every try.
func startEphemeral(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.comesUp()
	d.do(StartContainer{
		Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.attempt, ImageRef: m.hist.Image.Ref, ImageUser: m.hist.Image.User,
		TargetID: f.runningID(m.target), Why: "added to the pod",
	})
}

// ephemeralOf are a pod's ephemeral containers as any others.
func ephemeralOf(spec *v1.PodSpec) []v1.Container {
	var all []v1.Container
	for i := range spec.EphemeralContainers {
		all = append(all, v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}
