package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

type containerRule struct {
	name string
	when func(*facts, *member) bool
	then func(*facts, *member, *Decision, *Step)
}

// containerRules apply to every container of a pod with a ready sandbox; the first match wins.
var containerRules []containerRule

func init() {
	containerRules = []containerRule{
		// A user requested the restart of this container, not of its successor.
		{"restart asked -> stop", func(f *facts, m *member) bool { return m.restartAsked() && m.is(runtime.Running) }, stopAsked},
		// A new container gets a new result, so this one must stop.
		{"startup probe failed -> stop", failing(Startup), stopUnhealthy(Startup)},
		{"liveness probe failed -> stop", failing(Liveness), stopUnhealthy(Liveness)},
		{"postStart hook failed -> stop", hookFailed, stopFailedHook},
		// A stop that has begun continues, even if its reason is no longer known.
		{"stop under way -> go on", isTerminating, continueTermination},
		// No probe runs, and no later container starts, before the hook is done.
		{"postStart hook not done -> make it", hookUnderWay, makePostStart},
		// Its image changed. It runs until the new image is present.
		{"changed -> stop, to start it anew", (*facts).changed, stopChanged},
		// Its cpu or memory changed, and its resizePolicy requires a restart.
		{"resized -> stop, to start it in its new size", (*facts).resizedByRestart, stopToResize},
		{"resized -> resize it as it runs", (*facts).resized, resize},
		// Until it has started, its liveness and readiness do not count.
		{"not started -> probe", unstarted, waitStarted},
		{"not ready -> probe", unready, waitReadiness},
		{"running -> leave", func(f *facts, m *member) bool { return m.is(runtime.Running) }, leave},
		// The runtime lost track of it. Stopping it makes its state known.
		{"state unknown -> stop", func(f *facts, m *member) bool { return m.is(runtime.Unknown) }, stopUnknown},
		// The next step depends on an exit code that the runtime has not reported.
		{"exit code unknown -> wait", (*facts).needsExit, waitExit},
		{"completed -> leave", (*facts).completed, leave},
		{"init done -> leave", func(f *facts, m *member) bool { return m.kind == Init && f.initSatisfied(m) }, leave},
		// Its image is pulled while it waits for earlier containers.
		{"not its turn -> wait", func(f *facts, m *member) bool { return !f.turn(m) }, waitTurn},
		// It never ran, so it has no earlier size that is admitted.
		{"not admitted -> wait", (*facts).hasNoAdmittedSize, waitSize},
		// An interrupted start created it and did not start it.
		{"created -> start", func(f *facts, m *member) bool { return m.is(runtime.Created) && !f.starting(m) }, startCreated},
		{"crashed -> back off (10s, doubling to 5m at most; forgiven after 10m)", (*facts).backsOff, backOff},
		{"start failed -> wait", func(f *facts, m *member) bool { return f.in.Now.Before(m.hist.Start.Until) }, waitStart},
		{"image missing -> get it", func(f *facts, m *member) bool { return !f.starting(m) && !m.imagePresent() }, getImage},
		{"volumes missing -> prepare", func(f *facts, m *member) bool { return !f.in.History.VolumesReady }, waitVolumes},
		// An earlier start may have created it: one that failed, or has a status that is
		// unknown.
		{"not looked yet -> wait", func(f *facts, m *member) bool { return f.in.Unseen && !f.starting(m) }, waitLook},
		{"start", func(*facts, *member) bool { return true }, start},
	}
}

func (f *facts) steps(d *Decision) {
	f.keepPreparing(d)
	f.follow(containerRules, f.members, d)
	f.follow(ephemeralRules, f.ephemeral, d)
	f.resizePod(d)
	f.showMissing(d)
	f.tellUnresized(d)
	f.updateVolumes(d)
}

// follow applies the first matching rule to each container.
func (f *facts) follow(rules []containerRule, members []member, d *Decision) {
	for i := range members {
		m := &members[i]
		for _, r := range rules {
			if !r.when(f, m) {
				continue
			}
			s := Step{Container: m.spec.Name, Rule: r.name}
			r.then(f, m, d, &s)
			d.Steps = append(d.Steps, s)
			break
		}
	}
}

// keepPreparing names preparations that are in progress, even if no container currently
// waits for them.
func (f *facts) keepPreparing(d *Decision) {
	prepare := PrepareVolumes{UID: f.in.Desired.UID}
	if f.in.InFlight[prepare.Subject()] == Action(prepare) {
		d.do(prepare)
	}
	// A runtime lists a sandbox shortly before the call that created it returns. If the
	// call were canceled, the sandbox could be removed.
	if run, ok := f.in.InFlight[RunSandbox{}.Subject()].(RunSandbox); ok && run.Attempt == f.cur.Attempt {
		d.do(run)
	}
}

// starting reports whether a start of the container is in progress. Observations of it are
// handled by the start.
func (f *facts) starting(m *member) bool {
	a, ok := f.in.InFlight[StartContainer{Container: m.spec.Name}.Subject()]
	if !ok {
		return false
	}
	_, ok = a.(StartContainer)
	return ok
}

func leave(f *facts, m *member, d *Decision, s *Step) {
	s.Why, s.Problem = m.hist.Image.Warning, m.hist.Image.Warning != ""
	if !m.is(runtime.Running) {
		return
	}
	// A broken liveness probe would otherwise go unnoticed.
	if f.trial(m, Liveness).needsUser() {
		f.explain(m, Liveness, s)
	}
	f.watch(m, d)
}

func stopAsked(f *facts, m *member, d *Decision, s *Step) {
	s.Why = "restart asked"
	f.end(d, m, graceOf(f.cur), s.Why)
}

// changed reports whether a running container differs from the manifest although its
// sandbox can be kept. Init containers are excluded, because they have completed.
func (f *facts) changed(m *member) bool {
	return m.kind != Init && m.is(runtime.Running) && f.another(m)
}

func (f *facts) another(m *member) bool {
	made, ours := m.last.Annotations[runtime.AnnotationStart]
	if !ours { // of a kubelet that ran the pod in between, or of an earlier podd
		made = m.last.Annotations[runtime.AnnotationContainerHash]
		ours = made != "" && made != manifest.KubeletHash(m.spec)
	}
	return f.in.Desired.FixedUID && ours && made != f.in.Desired.Containers[m.spec.Name].Digits()
}

func stopChanged(f *facts, m *member, d *Decision, s *Step) {
	if m.imagePresent() {
		s.Why = "its manifest changed"
		f.endOwn(d, m, termination{grace: graceOf(f.cur), why: s.Why, again: true})
		return
	}
	getImage(f, m, d, s)
	s.Reason = ""
	if unstarted(f, m) {
		f.attempt(m, d, Startup)
	} else {
		f.watch(m, d)
	}
}

func stopUnknown(f *facts, m *member, d *Decision, s *Step) {
	s.Why = "the runtime does not know its state"
	f.end(d, m, graceOf(f.cur), s.Why)
}

// needsExit reports whether a container exited with an unknown code on which the next step
// depends.
func (f *facts) needsExit(m *member) bool {
	if !m.is(runtime.ExitUnknown) || m.restartAsked() {
		return false
	}
	return m.kind == Init || m.kind == Regular && !manifest.RestartsAlways(&f.in.Desired.Spec.Spec, m.spec)
}

func waitExit(f *facts, m *member, d *Decision, s *Step) {
	s.Why, s.Problem = exitMissing(m.last), true
}

// exitMissing returns the message for an exit that the runtime has not reported yet.
func exitMissing(c *runtime.Container) string {
	return "it has exited, and the runtime has not reported its exit code; asking again: " + c.Message
}

func waitTurn(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.startingReason()
	if m.last == nil && !m.imagePresent() {
		d.tryImage(f.in, m.spec, m.hist.Image, false)
	}
}

// startingReason returns the waiting reason of a container in a pod without problems.
func (f *facts) startingReason() string {
	if len(f.in.Desired.Spec.Spec.InitContainers) == 0 {
		return "ContainerCreating"
	}
	return "PodInitializing"
}

func startCreated(f *facts, m *member, d *Decision, s *Step) {
	if f.in.Now.Before(m.hist.Start.Until) {
		waitStart(f, m, d, s)
		return
	}
	d.do(StartContainer{
		Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.last.Attempt, Restarts: m.last.Restarts(),
		CreatedID: m.last.ID, PostStart: HasPostStart(m.spec), Why: "its start was interrupted",
	})
}

func (f *facts) backsOff(m *member) bool {
	return m.hasEnded() && !m.restartAsked() && !f.another(m) && f.in.Now.Before(f.restartAt(m))
}

func (f *facts) restartAt(m *member) time.Time {
	seen, ok := f.in.History.SeenExit[m.last.ID]
	if !ok {
		seen = f.in.Now
	}
	return restartAt(m.last, seen, f.in.Node.MaxBackoff)
}

func backOff(f *facts, m *member, d *Decision, s *Step) {
	n := crashes(m.last)
	limit := f.in.Node.MaxBackoff
	s.Until = f.restartAt(m)
	s.Reason, s.Crashes = "CrashLoopBackOff", n+1
	s.Why = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s: crashed %d times in a row, last exit %s",
		backoff(n, limit), m.spec.Name, f.in.Desired.Key, n+1, m.exitText())
	if h := m.postStart(); h.Failed {
		s.Why += ", " + hookText(h)
	}
	s.Problem = true
	d.wakeAt(s.Until)
}

func waitStart(f *facts, m *member, d *Decision, s *Step) {
	fail := m.hist.Start
	s.Reason, s.Why, s.Until, s.Problem, s.Failure = fail.Reason, fail.Message, fail.Until, true, fail
	d.wakeAt(fail.Until)
}

func getImage(f *facts, m *member, d *Decision, s *Step) {
	img := m.hist.Image
	if img.Name == m.spec.Image && img.Failure.Message != "" {
		s.Reason, s.Why, s.Problem = img.Failure.Reason, img.Failure.Message, true
		s.Until, s.Failure = img.Failure.Until, img.Failure
	}
	d.tryImage(f.in, m.spec, img, false)
}

// tryImage names the pull unless it failed and its retry is not due.
func (d *Decision) tryImage(in *Input, c *v1.Container, img Image, successor bool) {
	if img.Name == c.Image {
		if img.Failure.Final {
			return
		}
		if in.Now.Before(img.Failure.Until) {
			d.wakeAt(img.Failure.Until)
			return
		}
	}
	d.do(EnsureImage{Container: c.Name, Image: c.Image, Policy: string(c.ImagePullPolicy), Successor: successor})
}

// imagePresent reports whether the image for the next start is present.
func (m *member) imagePresent() bool {
	img := m.hist.Image
	stale := img.Used && m.spec.ImagePullPolicy == v1.PullAlways
	return img.Ref != "" && img.Name == m.spec.Image && !stale
}

// prefetch pulls all images while the sandbox is created or waited for.
func (f *facts) prefetch(d *Decision) {
	for i := range f.members {
		m := &f.members[i]
		s := Step{Container: m.spec.Name, Rule: "not its turn -> wait", Reason: f.startingReason()}
		switch {
		case f.completed(m):
			s.Rule, s.Reason = "completed -> leave", ""
		case !m.imagePresent():
			getImage(f, m, d, &s)
			s.Rule = "image missing -> get it"
		}
		d.Steps = append(d.Steps, s)
	}
	f.prefetchEphemeral(d)
}

func waitVolumes(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.startingReason()
	if d.prepares() {
		return
	}
	f.prepareVolumes(d)
	s.Why = d.Why
}

func waitLook(f *facts, _ *member, _ *Decision, s *Step) {
	s.Reason, s.Why = f.startingReason(), "looking whether an earlier start made it"
}

func start(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.startingReason()
	a := StartContainer{Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.attempt, Restarts: m.restarts, PostStart: HasPostStart(m.spec), Why: "wanted"}
	a.ImageRef, a.ImageUser = m.hist.Image.Ref, m.hist.Image.User
	if m.hasEnded() {
		a.Backoff = crashes(m.last) + 1
		a.Why = "exited with " + m.exitText()
		switch {
		case f.another(m):
			a.Backoff, a.Why = 0, "its manifest changed"
		case m.restartAsked():
			a.Backoff, a.Why = 0, "restart asked"
		}
	}
	d.do(a)
}
