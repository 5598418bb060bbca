package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// A containerRule is a row of a table of container rules.
type containerRule struct {
	id       RuleID
	verb     string
	sentence string
	when     func(*facts, *containerFacts) bool
	then     func(*facts, *containerFacts, *Decision, *Step)
}

// containerRules apply to each container, except ephemeral containers, of a pod with a ready
// sandbox. The first row with a true condition applies.
var containerRules = []containerRule{
	// The request is for the running container, not for a later container of the same name.
	{RuleRestartRequested, "stop", "a restart of the container was requested",
		func(f *facts, m *containerFacts) bool { return m.isRestartRequested() && m.hasState(runtime.Running) }, stopForRestart},
	// The result of the probe remains in effect until another container is started.
	{RuleStartupProbeFailed, "stop", "the startup probe failed, so the container is stopped",
		hasFailedProbe(StartupProbe), stopUnhealthy(StartupProbe)},
	{RuleLivenessProbeFailed, "stop", "the liveness probe failed, so the container is stopped",
		hasFailedProbe(LivenessProbe), stopUnhealthy(LivenessProbe)},
	{RulePostStartHookFailed, "stop", "the postStart hook failed, so the container is stopped",
		hasHookFailed, stopFailedHook},
	// A stop continues even if the reason for it does not apply any more.
	{RuleTerminating, "stop", "the stop of the container has begun and continues",
		isTerminating, continueTermination},
	// Until the hook is done, podd runs no probe of the container and does not start the containers
	// after it.
	{RulePostStartHookPending, "run hook", "the postStart hook of the container has not finished",
		isPostStartPending, runPostStart},
	// The sandbox is kept. The old container runs until the new image is present.
	{RuleContainerChanged, "restart", "the manifest of the container changed, so the container is stopped and started again",
		(*facts).isChanged, stopChanged},
	{RuleResizeByRestart, "restart", "the cpu or memory of the container changed, and its resizePolicy requires a restart",
		(*facts).needsRestartToResize, stopToResize},
	{RuleResizeInPlace, "resize", "the cpu or memory of the container changed and is applied while the container runs",
		(*facts).needsResize, resize},
	// Until the startup probe has passed, the other probes do not run.
	{RuleNotStarted, "probe", "the startup probe of the container has not passed yet",
		isUnstarted, waitStarted},
	{RuleNotReady, "probe", "the readiness probe of the container has not passed",
		isUnready, waitReadiness},
	{RuleRunning, "keep", "the container runs",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Running) }, keepRunning},
	// The container is stopped. After that, its state is known.
	{RuleStateUnknown, "stop", "the runtime does not know the state of the container, so the container is stopped",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Unknown) }, stopUnknown},
	{RuleExitCodeUnknown, "wait", "the container has exited, and the next step depends on an exit code that the runtime has not reported",
		(*facts).needsExitCode, waitExitCode},
	{RuleCompleted, "keep", "the container has exited and is not restarted",
		(*facts).isCompleted, keepRunning},
	{RuleInitCompleted, "keep", "the init container has completed",
		func(f *facts, m *containerFacts) bool { return m.kind == KindInit && f.allowsFollowing(m) }, keepRunning},
	// The image is pulled while the container waits.
	{RuleNotItsTurn, "wait", "the container waits until an earlier container of the pod has started or completed",
		func(f *facts, m *containerFacts) bool { return !f.isItsTurn(m) }, waitTurn},
	// This rule applies only to a container that was never created. Other containers start with
	// their earlier sizes, which are admitted.
	{RuleSizeNotAdmitted, "wait", "the node does not admit the cpu and memory of the container",
		(*facts).hasNoAdmittedSize, waitSize},
	{RuleCreated, "start", "an interrupted start created the container, which is started now",
		func(f *facts, m *containerFacts) bool { return m.hasState(runtime.Created) && !f.isStarting(m) }, startCreated},
	{RuleCrashBackOff, "wait", "the container crashed repeatedly; the delay of its restart doubles with each crash, up to a limit",
		(*facts).backsOff, backOff},
	{RuleStartFailed, "wait", "the last start of the container failed and is retried after a delay",
		func(f *facts, m *containerFacts) bool { return f.in.Now.Before(m.history.StartFailure.RetryAt) }, waitStart},
	{RuleImageMissing, "pull", "the image of the container is not present, or podd has not verified yet that the pod may use it",
		func(f *facts, m *containerFacts) bool { return !f.isStarting(m) && !m.hasImage() }, ensureImage},
	{RuleVolumesMissing, "prepare", "the volumes of the pod are not prepared",
		func(f *facts, m *containerFacts) bool { return !f.in.History.VolumesReady }, waitVolumes},
	// A start that failed or has an unknown result may have created the container.
	{RuleNotObserved, "wait", "an earlier start may have created the container, so the runtime is checked first",
		func(f *facts, m *containerFacts) bool { return f.in.MayHaveUnobserved && !f.isStarting(m) }, waitObservation},
	{RuleStart, "start", "the container is started",
		func(*facts, *containerFacts) bool { return true }, start},
}

// preparingRules apply to each container of a pod without a ready sandbox. The images are pulled
// while the sandbox is created.
var preparingRules = []containerRule{
	{RuleCompleted, "keep", "",
		(*facts).isCompleted, keepUnchanged},
	{RuleEphemeralRemoved, "keep", "",
		func(f *facts, m *containerFacts) bool { return m.kind == KindEphemeral && m.isEphemeralCreated }, keepUnchanged},
	{RuleImageMissing, "pull", "",
		func(f *facts, m *containerFacts) bool { return !m.hasImage() }, prefetchImage},
	{RuleSandboxNotReady, "wait", "the pod has no sandbox that is ready",
		func(*facts, *containerFacts) bool { return true }, waitSandbox},
}

// keepEarlierRules apply to each container of a version that cannot start yet, while an earlier
// version runs.
var keepEarlierRules = []containerRule{
	{RuleImageMissing, "pull", "",
		func(f *facts, m *containerFacts) bool { return !m.hasImage() }, ensureImage},
	{RuleEarlierVersionRuns, "wait", "an earlier version of the pod is kept running",
		func(*facts, *containerFacts) bool { return true }, keepUnchanged},
}

// decideContainers applies the container rules to a pod with a ready sandbox.
func (f *facts) decideContainers(d *Decision) {
	f.applyContainerRules(containerRules, f.containers, d)
	f.applyContainerRules(ephemeralRules, f.ephemeralContainers, d)
}

// applyContainerRules applies the first matching rule to each container.
func (f *facts) applyContainerRules(rules []containerRule, members []containerFacts, d *Decision) {
	for i := range members {
		m := &members[i]
		for _, r := range rules {
			if !r.when(f, m) {
				continue
			}
			s := Step{Container: m.spec.Name, Rule: r.id}
			r.then(f, m, d, &s)
			d.Steps = append(d.Steps, s)
			break
		}
	}
}

// isStarting reports whether a start of the container is in progress.
func (f *facts) isStarting(m *containerFacts) bool {
	a, ok := f.in.InFlight[StartContainer{Container: m.spec.Name}.Subject()]
	if !ok {
		return false
	}
	_, ok = a.(StartContainer)
	return ok
}

func keepRunning(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why, s.NeedsUser = m.history.Image.Warning, m.history.Image.Warning != ""
	if !m.hasState(runtime.Running) {
		return
	}
	// Show that attempts of the liveness probe cannot be carried out, because nothing else shows
	// this.
	if f.probeState(m, LivenessProbe).needsUser() {
		f.showProbe(m, LivenessProbe, s)
	}
	f.probeStartedContainer(m, d)
}

func stopForRestart(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why = "restart requested"
	f.stopForOwnReason(d, m, graceOf(f.current), s.Why)
}

// isChanged reports whether a container runs and its desired manifest differs from the manifest
// from which it was created. It returns false for init containers, which are not restarted because
// of a change.
func (f *facts) isChanged(m *containerFacts) bool {
	return m.kind != KindInit && m.hasState(runtime.Running) && f.hasChangedManifest(m)
}

// hasChangedManifest reports whether the desired manifest of a container differs from the manifest
// from which its newest container was created.
func (f *facts) hasChangedManifest(m *containerFacts) bool {
	startHash, isRecorded := m.last.Annotations[runtime.AnnotationStartHash]
	if !isRecorded { // AnnotationStartHash is missing if a kubelet that ran the pod for some time, or an older version of podd, created the container
		startHash = m.last.Annotations[runtime.AnnotationContainerHash]
		isRecorded = startHash != "" && startHash != manifest.KubeletHash(m.spec)
	}
	return f.in.Desired.HasFixedUID && isRecorded && startHash != f.in.Desired.ContainerHashes[m.spec.Name].StartHashPrefix()
}

func stopChanged(f *facts, m *containerFacts, d *Decision, s *Step) {
	if m.hasImage() {
		s.Why = "its manifest changed"
		f.beginStop(d, m, stopBudget{grace: graceOf(f.current), why: s.Why, willRestart: true})
		return
	}
	ensureImage(f, m, d, s)
	s.Reason = ""
	if isUnstarted(f, m) {
		f.scheduleProbe(m, d, StartupProbe)
	} else {
		f.probeStartedContainer(m, d)
	}
}

func stopUnknown(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why = "the runtime does not know the state of the container"
	f.stopForOwnReason(d, m, graceOf(f.current), s.Why)
}

// needsExitCode reports whether a container has exited with an unknown code and the next step
// depends on the code.
func (f *facts) needsExitCode(m *containerFacts) bool {
	if !m.hasState(runtime.ExitCodeUnknown) || m.isRestartRequested() {
		return false
	}
	return manifest.CanRestartAll(m.spec) || m.kind == KindInit || m.kind == KindRegular && !manifest.RestartsAlways(&f.in.Desired.Object.Spec, m.spec)
}

func waitExitCode(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why, s.NeedsUser = missingExitMessage(m.last), true
}

// missingExitMessage returns the message for a container whose exit code the runtime has not
// reported.
func missingExitMessage(c *runtime.Container) string {
	return "the container has exited, but the runtime has not reported its exit code; podd queries the exit code again; cause: " + c.Message
}

func waitTurn(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	if m.last == nil && !m.hasImage() {
		d.addImagePull(f.in, m.spec, m.history.Image, false)
	}
}

// startingReason returns the waiting reason of a container that waits without a problem.
func (f *facts) startingReason(m *containerFacts) string {
	if m.lastBeforeRestart != nil {
		return restartingReason
	}
	if len(f.in.Desired.Object.Spec.InitContainers) == 0 {
		return "ContainerCreating"
	}
	return "PodInitializing"
}

func startCreated(f *facts, m *containerFacts, d *Decision, s *Step) {
	if f.in.Now.Before(m.history.StartFailure.RetryAt) {
		waitStart(f, m, d, s)
		return
	}
	d.addAction(StartContainer{
		Container: m.spec.Name, SandboxID: f.current.ID, Attempt: m.last.Attempt, Restarts: m.last.Restarts(),
		CreatedID: m.last.ID, PodRestarts: f.podRestarts, RunsPostStart: HasPostStart(m.spec), Why: "its start was interrupted",
	})
}

func (f *facts) backsOff(m *containerFacts) bool {
	c := f.crashedContainer(m)
	return c != nil && f.in.Now.Before(f.restartAt(c))
}

// crashedContainer returns the exited container whose exit delays the next start of m; nil if there
// is none.
func (f *facts) crashedContainer(m *containerFacts) *runtime.Container {
	switch {
	case m.causedRestartAll():
		return m.lastBeforeRestart
	case m.hasExited() && !m.isRestartRequested() && !f.hasChangedManifest(m):
		return m.last
	}
	return nil
}

// restartAt returns when the exited container c may be restarted.
func (f *facts) restartAt(c *runtime.Container) time.Time {
	seen, ok := f.in.History.ExitSeenAt[c.ID]
	if !ok {
		seen = f.in.Now
	}
	return restartAt(c, seen, f.in.Node.MaxBackoff)
}

func backOff(f *facts, m *containerFacts, d *Decision, s *Step) {
	c := f.crashedContainer(m)
	n := crashesBeforeStart(c)
	limit := f.in.Node.MaxBackoff
	s.Until = f.restartAt(c)
	s.Reason, s.Crashes = "CrashLoopBackOff", n+1
	s.Why = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s: crashed %d times in a row, last exit %s",
		backoffDelay(n, limit), m.spec.Name, f.in.Desired.Key, n+1, exitText(c))
	if h := m.postStart(); h.Failed {
		s.Why += ", " + hookText(h)
	}
	s.NeedsUser = true
	d.wakeAt(s.Until)
}

func waitStart(f *facts, m *containerFacts, d *Decision, s *Step) {
	fail := m.history.StartFailure
	s.Reason, s.Why, s.Until, s.NeedsUser, s.Failure = fail.Reason, fail.Message, fail.RetryAt, true, fail
	d.wakeAt(fail.RetryAt)
}

func ensureImage(f *facts, m *containerFacts, d *Decision, s *Step) {
	img := m.history.Image
	if img.Name == m.spec.Image && img.Failure.Message != "" {
		s.Reason, s.Why, s.NeedsUser = img.Failure.Reason, img.Failure.Message, true
		s.Until, s.Failure = img.Failure.RetryAt, img.Failure
	}
	d.addImagePull(f.in, m.spec, img, false)
}

// addImagePull adds the action that pulls the image of container c. img is the result of the last
// pull. If img is a failure, addImagePull does nothing until the retry is due.
func (d *Decision) addImagePull(in *Input, c *v1.Container, img Image, successor bool) {
	if img.Name == c.Image {
		if img.Failure.IsFinal {
			return
		}
		if in.Now.Before(img.Failure.RetryAt) {
			d.wakeAt(img.Failure.RetryAt)
			return
		}
	}
	d.addAction(EnsureImage{Container: c.Name, Image: c.Image, Policy: string(c.ImagePullPolicy), ForSuccessor: successor})
}

// hasImage reports whether the image for the next start of m is present.
func (m *containerFacts) hasImage() bool {
	img := m.history.Image
	mustPull := img.Used && m.spec.ImagePullPolicy == v1.PullAlways
	return img.Ref != "" && img.Name == m.spec.Image && !mustPull
}

// prefetchImages pulls the images of all containers while the pod has no ready sandbox.
func (f *facts) prefetchImages(d *Decision) {
	f.applyContainerRules(preparingRules, f.containers, d)
	f.applyContainerRules(preparingRules, f.ephemeralContainers, d)
}

func prefetchImage(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	ensureImage(f, m, d, s)
}

func waitSandbox(f *facts, m *containerFacts, _ *Decision, s *Step) { s.Reason = f.startingReason(m) }

func keepUnchanged(*facts, *containerFacts, *Decision, *Step) {}

func waitVolumes(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	if d.hasPrepareVolumes() {
		return
	}
	f.prepareVolumes(d)
	s.Why = d.Why
}

func waitObservation(f *facts, m *containerFacts, _ *Decision, s *Step) {
	s.Reason, s.Why = f.startingReason(m), "checking whether an earlier start has created the container"
}

func start(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Reason = f.startingReason(m)
	a := StartContainer{Container: m.spec.Name, SandboxID: f.current.ID, Attempt: m.attempt, Restarts: m.restarts, RunsPostStart: HasPostStart(m.spec), PodRestarts: f.podRestarts, Why: "desired"}
	a.ImageRef, a.ImageUser = m.history.Image.Ref, m.history.Image.User
	switch c := f.crashedContainer(m); {
	case c != nil:
		a.Crashes, a.Why = crashesBeforeStart(c)+1, "exited with "+exitText(c)
	case m.lastBeforeRestart != nil:
		a.Why = "all containers are restarted"
	case m.hasExited() && f.hasChangedManifest(m):
		a.Why = "its manifest changed"
	case m.hasExited():
		a.Why = "restart requested"
	}
	d.addAction(a)
}
