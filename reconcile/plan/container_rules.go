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

// containerRules see every container of a pod whose sandbox is ready; the
// first match wins.
var containerRules []containerRule

func init() {
	containerRules = []containerRule{
		// Asked by a user: the one running at that moment ends, once.
		{"restart asked -> stop", func(f *facts, m *member) bool { return m.restartAsked() && m.is(runtime.Running) }, stopAsked},
		// A probe's verdict ends it; only a new container is asked again.
		{"startup probe failed -> stop", failing(Startup), stopUnhealthy(Startup)},
		{"liveness probe failed -> stop", failing(Liveness), stopUnhealthy(Liveness)},
		{"postStart hook failed -> stop", hookFailed, stopFailedHook},
		// What has begun is not taken back, whoever forgot why it began.
		{"stop under way -> go on", beingEnded, goOnEnding},
		// Nobody asks it, and nothing starts behind it, before that is over.
		{"postStart hook not done -> make it", hookUnderWay, makePostStart},
		// Its image is another; it runs on until that can be had.
		{"changed -> stop, to start it anew", (*facts).changed, stopChanged},
		// Its cpu or memory changed; some programs read theirs only once.
		{"resized -> stop, to start it in its new size", (*facts).resizedByRestart, stopToResize},
		{"resized -> resize it as it runs", (*facts).resized, resize},
		// Until it has started it is neither alive nor ready, whatever it says.
		{"not started -> probe", unstarted, waitStarted},
		{"not ready -> probe", unready, waitReadiness},
		{"running -> leave", func(f *facts, m *member) bool { return m.is(runtime.Running) }, leave},
		// The runtime lost track of it; ending it makes its state known.
		{"state unknown -> stop", func(f *facts, m *member) bool { return m.is(runtime.Unknown) }, stopUnknown},
		{"completed -> leave", (*facts).completed, leave},
		{"init done -> leave", func(f *facts, m *member) bool { return m.kind == Init && f.initSatisfied(m) }, leave},
		// Its image can be fetched while others are still in its way.
		{"not its turn -> wait", func(f *facts, m *member) bool { return !f.turn(m) }, waitTurn},
		// It has no size yet that it could have instead.
		{"not admitted -> wait", (*facts).sizeless, waitSize},
		// An interrupted start left it made and never run.
		{"created -> start", func(f *facts, m *member) bool { return m.is(runtime.Created) && !f.starting(m) }, startCreated},
		{"crashed -> back off (10s, doubling to 5m at most; forgiven after 10m)", (*facts).backsOff, backOff},
		{"start failed -> wait", func(f *facts, m *member) bool { return f.in.Now.Before(m.hist.Start.Until) }, waitStart},
		{"image missing -> get it", func(f *facts, m *member) bool { return !f.starting(m) && !m.imagePresent() }, getImage},
		{"volumes missing -> prepare", func(f *facts, m *member) bool { return !f.in.History.VolumesReady }, waitVolumes},
		{"start", func(*facts, *member) bool { return true }, start},
	}
}

func (f *facts) steps(d *Decision) {
	f.keepPreparing(d)
	f.follow(containerRules, f.members, d)
	f.follow(ephemeralRules, f.ephemeral, d)
	f.resizePod(d)
	f.tellMissing(d)
	f.tellUnresized(d)
	f.updateVolumes(d)
}

// follow does for each container what its first rule that matches says.
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

// keepPreparing names what is under way to make the pod's ground, though no
// container may be waiting for it right now.
func (f *facts) keepPreparing(d *Decision) {
	prepare := PrepareVolumes{UID: f.in.Desired.UID}
	if f.in.InFlight[prepare.Subject()] == Action(prepare) {
		d.do(prepare)
	}
	// Runtimes list a sandbox a moment before the call that made it returns;
	// giving that call up could undo it.
	if run, ok := f.in.InFlight[RunSandbox{}.Subject()].(RunSandbox); ok && run.Attempt == f.cur.Attempt {
		d.do(run)
	}
}

// starting: a start of it is under way; what is seen of it meanwhile is the
// start's own business.
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
	// Nobody would notice that it is never asked whether it is alive.
	if f.trial(m, Liveness).hopeless() {
		f.explain(m, Liveness, s)
	}
	f.watch(m, d)
}

func stopAsked(f *facts, m *member, d *Decision, s *Step) {
	s.Why = "restart asked"
	f.end(d, m, graceOf(f.cur), s.Why)
}

// changed: what runs was made of other words than the manifest has, though its
// pod may stay. Init containers have done their work.
func (f *facts) changed(m *member) bool {
	return m.kind != Init && m.is(runtime.Running) && f.another(m)
}

func (f *facts) another(m *member) bool {
	made, ours := m.last.Annotations[runtime.AnnotationStart]
	if !ours { // a kubelet's, which had the pod in between, or an earlier podd's
		made = m.last.Annotations[runtime.AnnotationContainerHash]
		ours = made != "" && made != manifest.KubeletHash(m.spec)
	}
	return f.in.Desired.FixedUID && ours && made != f.in.Desired.Containers[m.spec.Name].Digits()
}

func stopChanged(f *facts, m *member, d *Decision, s *Step) {
	if m.imagePresent() {
		s.Why = "its manifest changed"
		f.endOwn(d, m, term{grace: graceOf(f.cur), why: s.Why, again: true})
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

func waitTurn(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.comesUp()
	if m.last == nil && !m.imagePresent() {
		d.tryImage(f.in, m.spec, m.hist.Image, false)
	}
}

// comesUp is the reason of a container that does not run yet in a pod that is fine.
func (f *facts) comesUp() string {
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
		Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.last.Attempt,
		CreatedID: m.last.ID, PostStart: HasPostStart(m.spec), Why: "its start was interrupted",
	})
}

func (f *facts) backsOff(m *member) bool {
	return m.is(runtime.Exited) && !m.restartAsked() && !f.another(m) && f.in.Now.Before(f.restartAt(m))
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
	s.Why = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s: crashed %d times in a row, last exit %d",
		Backoff(n, limit), m.spec.Name, f.in.Desired.Key, n+1, m.last.ExitCode)
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

// tryImage names the pull unless it failed and its time has not come.
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

// imagePresent: the image was found or pulled for the start to come.
func (m *member) imagePresent() bool {
	img := m.hist.Image
	stale := img.Used && m.spec.ImagePullPolicy == v1.PullAlways
	return img.Ref != "" && img.Name == m.spec.Image && !stale
}

// prefetch gets every image while the sandbox is made, or waited for.
func (f *facts) prefetch(d *Decision) {
	for i := range f.members {
		m := &f.members[i]
		s := Step{Container: m.spec.Name, Rule: "not its turn -> wait", Reason: f.comesUp()}
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
	s.Reason = f.comesUp()
	if d.prepares() {
		return
	}
	f.prepareVolumes(d)
	s.Why = d.Why
}

func start(f *facts, m *member, d *Decision, s *Step) {
	s.Reason = f.comesUp()
	a := StartContainer{Container: m.spec.Name, SandboxID: f.cur.ID, Attempt: m.attempt, PostStart: HasPostStart(m.spec), Why: "wanted"}
	a.ImageRef, a.ImageUser = m.hist.Image.Ref, m.hist.Image.User
	if m.is(runtime.Exited) {
		a.Backoff = crashes(m.last) + 1
		a.Why = fmt.Sprintf("exited with %d", m.last.ExitCode)
		switch {
		case f.another(m):
			a.Backoff, a.Why = 0, "its manifest changed"
		case m.restartAsked():
			a.Backoff, a.Why = 0, "restart asked"
		}
	}
	d.do(a)
}
