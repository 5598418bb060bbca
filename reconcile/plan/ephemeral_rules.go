package plan

import (
	"fmt"

	"podd/runtime"
)

// ephemeralRules apply to each ephemeral container of a pod with a ready sandbox. The first row
// with a true condition applies. A row without a sentence uses the sentence of the same rule in
// containerRules.
var ephemeralRules = []containerRule{
	// A stop continues even if the reason for it does not apply any more.
	{RuleTerminating, "stop", "",
		isTerminating, continueTermination},
	{RuleRunning, "keep", "",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Running) }, showWarning},
	// The container is stopped. After that, its state is known.
	{RuleStateUnknown, "stop", "",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Unknown) }, stopUnknown},
	{RuleExitCodeUnknown, "wait", "",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.ExitCodeUnknown) }, waitExitCode},
	// podd does not restart the container, because a user can add another ephemeral container.
	{RuleEphemeralExited, "keep", "the ephemeral container has exited and is never restarted",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Exited) }, showWarning},
	{RuleCreated, "start", "",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Created) && !f.isStarting(m) }, startCreated},
	{RuleStarting, "start", "the start of the container is in progress",
		(*facts).isStarting, continueStart},
	{RuleEphemeralRemoved, "keep", "the ephemeral container was removed, alone or with its sandbox, and is never restarted",
		func(f *facts, m *containerFacts) bool { return m.isEphemeralCreated }, showWarning},
	{RuleStartFailed, "wait", "",
		func(f *facts, m *containerFacts) bool { return f.in.Now.Before(m.history.StartFailure.RetryAt) }, waitStart},
	{RuleImageMissing, "pull", "",
		func(f *facts, m *containerFacts) bool { return !m.hasImage() }, ensureImage},
	// The ephemeral container cannot start yet, because the process namespace that it joins does
	// not exist.
	{RuleTargetNotRunning, "wait", "the target of the ephemeral container does not run",
		(*facts).lacksRunningTarget, waitTarget},
	{RuleVolumesMissing, "prepare", "",
		func(f *facts, m *containerFacts) bool { return !f.in.History.VolumesReady }, waitVolumes},
	// An ephemeral container must not be created twice.
	{RuleNotObserved, "wait", "",
		func(f *facts, m *containerFacts) bool { return f.in.MayHaveUnobserved }, waitTurn},
	{RuleStart, "start", "",
		func(*facts, *containerFacts) bool { return true }, startEphemeral},
}

func continueStart(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	d.addAction(f.in.InFlight[StartContainer{Container: m.spec.Name}.Subject()])
}

func showWarning(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why, s.NeedsUser = m.history.Image.Warning, m.history.Image.Warning != ""
}

// lacksRunningTarget reports whether m has a target and the target does not run.
func (f *facts) lacksRunningTarget(m *containerFacts) bool {
	return m.target != "" && f.runningID(m.target) == ""
}

// runningID returns the ID of the running container with this name; "" if there is none.
func (f *facts) runningID(name string) string {
	for i := range f.containers {
		if m := &f.containers[i]; m.spec.Name == name && m.hasState(runtime.Running) {
			return m.last.ID
		}
	}
	return ""
}

func waitTarget(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	s.Why = fmt.Sprintf("its target container %s does not run", m.target)
}

// startEphemeral starts an ephemeral container. If the start fails, it is repeated with the same
// CRI attempt number, because an ephemeral container must not be created twice.
func startEphemeral(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	d.addAction(StartContainer{
		Container: m.spec.Name, SandboxID: f.current.ID, Attempt: m.attempt, Restarts: m.restarts, ImageRef: m.history.Image.Ref, ImageUser: m.history.Image.User,
		TargetID: f.runningID(m.target), Why: "added to the pod",
	})
}
