package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// ephemeralRules apply to every ephemeral container of a pod with a ready sandbox; the
// first match wins.
var ephemeralRules []containerRule

func init() {
	ephemeralRules = []containerRule{
		// A stop that has begun continues, even if its reason is no longer known.
		{"stop under way -> go on", isTerminating, continueTermination},
		{"running -> leave", func(f *facts, m *member) bool { return m.is(runtime.Running) }, leaveEphemeral},
		// The runtime lost track of it. Stopping it makes its state known.
		{"state unknown -> stop", func(f *facts, m *member) bool { return m.is(runtime.Unknown) }, stopUnknown},
		{"exit code unknown -> wait", func(f *facts, m *member) bool { return m.is(runtime.ExitUnknown) }, waitExit},
		// It is never restarted. A user can add another one.
		{"ended -> leave", func(f *facts, m *member) bool { return m.is(runtime.Exited) }, leaveEphemeral},
		// An interrupted start created it and did not start it.
		{"created -> start", func(f *facts, m *member) bool { return m.is(runtime.Created) && !f.starting(m) }, startCreated},
		{"starting -> go on", (*facts).starting, goOnStarting},
		// It was removed, or its sandbox was.
		{"gone -> leave", func(f *facts, m *member) bool { return m.made }, leaveEphemeral},
		{"start failed -> wait", func(f *facts, m *member) bool { return f.in.Now.Before(m.hist.Start.Until) }, waitStart},
		{"image missing -> get it", func(f *facts, m *member) bool { return !m.imagePresent() }, getImage},
		// The process namespace to share does not exist yet.
		{"its target does not run -> wait", (*facts).targetNotRunning, waitTarget},
		{"volumes missing -> prepare", func(f *facts, m *member) bool { return !f.in.History.VolumesReady }, waitVolumes},
		// It may already exist, and must not be created twice.
		{"not looked yet -> wait", func(f *facts, m *member) bool { return f.in.Unseen }, waitTurn},
		{"start", func(*facts, *member) bool { return true }, startEphemeral},
	}
}

// prefetchEphemeral pulls the images while the sandbox is created or waited for.
func (f *facts) prefetchEphemeral(d *Decision) {
	for i := range f.ephemeral {
		m := &f.ephemeral[i]
		s := Step{Container: m.spec.Name, Rule: "not its turn -> wait", Reason: f.startingReason()}
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
	s.Reason = f.startingReason()
	d.do(f.in.InFlight[StartContainer{Container: m.spec.Name}.Subject()])
}

func leaveEphemeral(f *facts, m *member, d *Decision, s *Step) {
	s.Why, s.Problem = m.hist.Image.Warning, m.hist.Image.Warning != ""
}

// targetNotRunning reports whether the target does not run. After the creation it is not
// needed.
func (f *facts) targetNotRunning(m *member) bool {
	return m.target != "" && f.runningID(m.target) == ""
}

// runningID returns the ID of the running container with this name; "" if there is none.
func (f *facts) runningID(name string) string {
	for i := range f.members {
		if m := &f.members[i]; m.spec.Name == name && m.is(runtime.Running) {
			return m.last.ID
		}
	}
	return ""
}

func waitTarget(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.startingReason()
	s.Why = fmt.Sprintf("container %s, whose processes it is to see, does not run", m.target)
}

// startEphemeral uses the same attempt number for every try.
func startEphemeral(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.startingReason()
	d.do(StartContainer{
		Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.attempt, Restarts: m.restarts, ImageRef: m.hist.Image.Ref, ImageUser: m.hist.Image.User,
		TargetID: f.runningID(m.target), Why: "added to the pod",
	})
}

// ephemeralOf returns a pod's ephemeral containers as Containers.
func ephemeralOf(spec *v1.PodSpec) []v1.Container {
	var all []v1.Container
	for i := range spec.EphemeralContainers {
		all = append(all, v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}
