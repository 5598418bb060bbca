package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/runtime"
)

// longestWait is at least as long as any single wait.
const longestWait = backoffMax

// checkLaws returns an error if a decision breaks a law.
func checkLaws(in Input, d Decision) error {
	subjects := map[string]bool{}
	for _, a := range d.Actions {
		if subjects[a.Subject()] {
			return fmt.Errorf("two actions with subject %s", a.Subject())
		}
		subjects[a.Subject()] = true
		if a, ok := a.(RunProbe); ok {
			if err := checkProbe(in, d, a); err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
			continue
		}
		if err := checkAction(in, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	isNew := func(a Action) bool { return in.InFlight[a.Subject()] != a }
	callsRuntime := func(a Action) bool { return a.Verb() != "kill" && a.Verb() != "empty" }
	switch {
	case d.Rule == "":
		return fmt.Errorf("the decision has no rule")
	case in.Desired == nil && !in.SourcesRead && slices.ContainsFunc(d.Actions, isNew):
		return fmt.Errorf("got a new action, although the sources were not read, want none")
	case !in.Node.RuntimeReachable && slices.ContainsFunc(d.Actions, func(a Action) bool { return isNew(a) && callsRuntime(a) }):
		return fmt.Errorf("got a new action that calls the runtime, although the runtime is unreachable, want none")
	case d.FullyRemoved && (in.Desired != nil || !in.SourcesRead || in.MayHaveUnobserved || newFacts(&in).hasPendingAction() || len(in.PodDirs)+len(in.DirsInUse) > 0 || slices.ContainsFunc(in.Observed, ours)):
		return fmt.Errorf("got FullyRemoved, although the pod is desired or something of it remains")
	case !d.WakeAt.IsZero() && !d.WakeAt.After(in.Now):
		return fmt.Errorf("WakeAt is not after now, so that the worker would decide again in a loop")
	case d.WakeAt.Sub(in.Now) > longestWait && !d.WakeAt.IsZero():
		return fmt.Errorf("WakeAt is in %s, want at most %s", d.WakeAt.Sub(in.Now), longestWait)
	case !d.ProbeAt.IsZero() && (!d.ProbeAt.After(in.Now) || d.ProbeAt.Sub(in.Now) > longestProbe(in)):
		return fmt.Errorf("ProbeAt is in %s, want after now and in at most %s", d.ProbeAt.Sub(in.Now), longestProbe(in))
	}
	if err := checkExitCodes(in, d); err != nil {
		return err
	}
	if err := checkBackOff(in, d); err != nil {
		return err
	}
	return checkReadinessContinues(in, d)
}

// checkExitCodes returns an error if a pod finishes although its result depends on unknown exit
// codes. It replaces the unknown exit codes with 0 and with 1. The result must be the same each
// time.
func checkExitCodes(in Input, d Decision) error {
	if d.Finished == nil || d.Finished.Reason != "" || d.Finished.Failed && newFacts(&in).failedInit() != nil || in.Desired.HasFinishedAtSource() {
		return nil
	}
	missing := false
	for _, code := range []int32{0, 1} {
		tried := in
		tried.Observed = cloneAll(in.Observed)
		for i := range tried.Observed {
			for j := range tried.Observed[i].Containers {
				if c := &tried.Observed[i].Containers[j]; c.State == runtime.ExitCodeUnknown {
					c.State, c.ExitCode, missing = runtime.Exited, code, true
				}
			}
		}
		if end := Next(tried).Finished; missing && (end == nil || end.Failed != d.Finished.Failed) {
			return fmt.Errorf("the pod has finished with Failed %t, although an exit code is unknown and the exit code %d would change the result", d.Finished.Failed, code)
		}
	}
	return nil
}

// checkBackOff returns an error if a container waits for longer than its back-off.
func checkBackOff(in Input, d Decision) error {
	f := newFacts(&in)
	for _, s := range d.Steps {
		for i := range f.containers {
			m := &f.containers[i]
			if m.spec.Name == s.Container && s.Rule == RuleCrashBackOff && s.Until.Sub(in.Now) > backoffDelay(crashesBeforeStart(f.crashedContainer(m)), 0) {
				return fmt.Errorf("container %s waits for %s, which is longer than its back-off", s.Container, s.Until.Sub(in.Now))
			}
		}
	}
	return nil
}

// ours reports whether podd created the sandbox inc.
func ours(inc runtime.Incarnation) bool { return !inc.Foreign }

// checkAction returns an error if an action must not begin.
func checkAction(in Input, a Action) error {
	if in.InFlight[a.Subject()] == a {
		return nil // the action was checked when it began
	}
	if v := a.Verb(); v == "run" || v == "start" || v == "prepare" {
		if remove := (RemoveDir{UID: in.Desired.UID}); in.InFlight[remove.Subject()] == Action(remove) {
			return fmt.Errorf("the directory of the pod is being removed")
		}
	}
	switch a := a.(type) {
	case StartContainer:
		if !slices.ContainsFunc(in.Observed, func(inc runtime.Incarnation) bool {
			return inc.ID == a.SandboxID && inc.Ready && IsCreatedFrom(&inc, in.Desired)
		}) {
			return fmt.Errorf("the sandbox is not ready, or is of another version")
		}
		if in.MayHaveUnobserved && a.CreatedID == "" && in.InFlight[a.Subject()] == nil {
			return fmt.Errorf("the result of the previous start was not observed")
		}
		ephemeral, err := checkEphemeralStart(in, a)
		if !ephemeral {
			err = checkTurn(in, a)
		}
		if err != nil {
			return err
		}
		return checkAlone(in)
	case RunSandbox:
		if in.MayHaveUnobserved {
			return fmt.Errorf("the result of the previous attempt was not observed")
		}
		if in.Objects.MissingMessage != "" && (newFacts(&in).current == nil || !newFacts(&in).current.Ready) {
			return fmt.Errorf("an object is missing")
		}
		return checkAlone(in)
	case StopContainer:
		if err := checkPreStopDone(in, a); err != nil {
			return err
		}
		return checkGrace(in, a)
	case RunPreStop:
		return checkPreStop(in, a)
	case RunPostStart:
		return checkPostStart(in, a)
	case StopSandbox:
		for _, b := range in.InFlight {
			if start, ok := b.(StartContainer); ok && start.SandboxID == a.ID && slices.ContainsFunc(in.Observed, func(inc runtime.Incarnation) bool {
				return inc.ID == a.ID && inc.Ready
			}) {
				return fmt.Errorf("%s is in progress", b)
			}
		}
	case ResizeContainer:
		f := newFacts(&in)
		for i := range f.containers {
			if m := &f.containers[i]; m.spec.Name == a.Container && m.hasState(runtime.Running) && m.last.ID == a.ID {
				return nil
			}
		}
		return fmt.Errorf("the container does not run")
	case RemoveSandbox:
		return checkDead(in, a.ID)
	case RemoveDir:
		if in.DirsInUse[a.UID] {
			return fmt.Errorf("a canceled start uses the directory")
		}
		for _, inc := range in.Observed {
			if inc.UID == a.UID {
				return fmt.Errorf("a sandbox uses the directory")
			}
		}
		for _, b := range in.InFlight {
			if b.Verb() == "run" || b.Verb() == "start" {
				return fmt.Errorf("%s is in progress", b)
			}
		}
	case KillProcesses:
		inc := runtime.FindSandbox(in.Observed, a.SandboxID)
		if inc == nil || inc.Foreign || inc.UID != a.UID || !IsLive(inc) {
			return fmt.Errorf("the sandbox does not run, or is foreign")
		}
		if end := in.History.Finished; in.Deletion == nil && (end == nil || end.Reason != ReasonEvicted || in.Now.Before(end.At.Add(killTimeout))) {
			return fmt.Errorf("the pod was not evicted, or was evicted just now")
		}
	case ReleaseVolumes:
		if in.DirsInUse[a.UID] || newFacts(&in).mayHaveUnknownObject() {
			return fmt.Errorf("a start may use the volumes")
		}
		for _, inc := range in.Observed {
			if inc.UID == a.UID && !inc.Foreign && IsLive(&inc) && in.History.Kills[inc.ID] < ProcessesKilled {
				return fmt.Errorf("a running sandbox uses the volumes")
			}
		}
	case ReleaseResources:
		if in.DirsInUse[a.UID] {
			return fmt.Errorf("a canceled start uses the volumes")
		}
		for _, inc := range in.Observed {
			if inc.UID == a.UID && IsLive(&inc) {
				return fmt.Errorf("a running sandbox uses the volumes")
			}
		}
	}
	return nil
}

// checkAlone returns an error if another version runs, or more than one sandbox of the desired
// version.
func checkAlone(in Input) error {
	n := 0
	for _, inc := range in.Observed {
		switch {
		case inc.Foreign || !IsLive(&inc):
		case !IsCreatedFrom(&inc, in.Desired):
			return fmt.Errorf("another version runs")
		default:
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("this version runs more than once")
	}
	return nil
}

// checkTurn returns an error if a container is started before the containers that precede it have
// completed or started, unless a later container shows that they did.
func checkTurn(in Input, a StartContainer) error {
	f := newFacts(&in)
	for i := range f.containers {
		if m := &f.containers[i]; m.mustStopForRestartAll() {
			return fmt.Errorf("%s must be stopped first, because all containers restart", m.spec.Name)
		}
	}
	for i := range f.containers {
		m := &f.containers[i]
		switch {
		case m.spec.Name == a.Container:
			return nil
		case m.kind != KindRegular && f.wasRegularCreated():
		case m.kind == KindInit && m.last == nil && f.wasLaterCreated(m): // the runtime no longer lists m
		case m.kind == KindInit && !(m.hasState(runtime.Exited) && m.last.ExitCode == 0),
			m.kind == KindSidecar && !m.hasRun,
			m.kind == KindSidecar && f.isHookPending(m),
			m.kind == KindRegular && m.hasState(runtime.Running) && f.isHookPending(m),
			m.kind == KindSidecar && m.spec.StartupProbe != nil && f.probeState(m, StartupProbe).Health != ProbePassed:
			return fmt.Errorf("%s must come first", m.spec.Name)
		}
	}
	return nil
}

// checkReplacement returns an error if the running version must not be replaced.
func checkReplacement(in Input) error {
	f := newFacts(&in)
	f.desired = in.Desired
	if f.current == nil || len(runningContainers(f.current)) == 0 || f.isFinished() {
		return nil
	}
	if in.Verdict.Answer == Reject {
		return fmt.Errorf("a running version is replaced by one that is rejected")
	}
	if in.SuccessorObjects.MissingMessage != "" {
		return fmt.Errorf("a running version is replaced by one with a missing object")
	}
	for _, c := range containersOf(&in.Successor.Object.Spec) {
		if img := in.History.SuccessorImages[c.Name]; img.Name != c.Image || img.Ref == "" {
			return fmt.Errorf("a running version is replaced, although the image of container %s of the next version was not pulled", c.Name)
		}
	}
	return nil
}

// checkGrace returns an error if a container gets more than the grace period of its pod, or less
// than two seconds.
func checkGrace(in Input, a StopContainer) error {
	for _, inc := range in.Observed {
		for _, c := range inc.Containers {
			if own, failed := ownGrace(in, &c); failed && strings.Contains(a.Why, "probe failed") && c.ID == a.ID {
				if a.Grace > max(own, minGrace) || own > 0 && a.Grace < minGrace {
					return fmt.Errorf("got a grace period of %s, want %s of the failed probe, but at least %s", a.Grace, own, minGrace)
				}
				continue
			}
			if g := graceOf(&inc); c.ID == a.ID && (a.Grace > max(g, minGrace) || g > 0 && a.Grace < minGrace && in.History.Terminations[a.ID].Since.IsZero()) {
				return fmt.Errorf("got a grace period of %s, want at most %s of the pod, but at least %s", a.Grace, graceOf(&inc), minGrace)
			}
		}
	}
	return nil
}

// checkDead returns an error if a sandbox must not be removed.
func checkDead(in Input, id string) error {
	for _, inc := range in.Observed {
		if inc.ID == id && (IsLive(&inc) || inc.Foreign) {
			return fmt.Errorf("the sandbox runs, or is foreign")
		}
	}
	return nil
}

// decideLawfully makes the next decision and checks it against the laws.
func (w *world) decideLawfully(t *rapid.T) Decision {
	w.note()
	w.check(t, w.in)
	stopped := w.in.History.Stopping
	d := w.decide()
	w.check(t, w.in)
	if strings.HasPrefix(d.Why, "changed") && w.in.History.Stopping != stopped && w.in.Verdict.Answer != Reject {
		for _, c := range containersOf(&w.in.Desired.Object.Spec) {
			if inc := w.sandbox(w.in.History.Stopping.SandboxID); w.in.History.Containers[c.Name].Image.Ref == "" && len(runningContainers(inc)) > 0 {
				t.Fatalf("a running version is stopped, although the image of container %s of the next version was not pulled", c.Name)
			}
		}
	}
	return d
}

func (w *world) sandbox(id string) *runtime.Incarnation {
	for i := range w.in.Observed {
		if w.in.Observed[i].ID == id {
			return &w.in.Observed[i]
		}
	}
	return &runtime.Incarnation{}
}

func (w *world) check(t *rapid.T, in Input) {
	before := deepCopy(in)
	d := Next(in)
	if w.added.broken != nil {
		t.Fatal(w.added.broken)
	}
	if diff := cmp.Diff(before, in); diff != "" {
		t.Fatalf("Next modified its input (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(d, Next(in)); diff != "" {
		t.Fatalf("second call of Next with the same input: got another decision (-first +second)\n%s", diff)
	}
	if d.UseSuccessor {
		if err := checkReplacement(in); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := checkLaws(in, d); err != nil {
		t.Fatalf("%v\n%s%+v", err, d, in.Observed)
	}
}

func deepCopy(in Input) Input {
	in.Observed = cloneAll(in.Observed)
	in.PodDirs = slices.Clone(in.PodDirs)
	in.InFlight, in.DirsInUse = maps.Clone(in.InFlight), maps.Clone(in.DirsInUse)
	for _, p := range []**manifest.Pod{&in.Desired, &in.Successor, &in.Previous} {
		if *p != nil {
			c := **p
			c.Object = c.Object.DeepCopy()
			*p = &c
		}
	}
	h := &in.History
	h.Containers, h.ExitSeenAt, h.SuccessorImages = maps.Clone(h.Containers), maps.Clone(h.ExitSeenAt), maps.Clone(h.SuccessorImages)
	h.ReleasedSandboxes, h.CleanupFailures = maps.Clone(h.ReleasedSandboxes), maps.Clone(h.CleanupFailures)
	h.ProbeStates, h.Terminations, h.TerminationMessages = maps.Clone(h.ProbeStates), maps.Clone(h.Terminations), maps.Clone(h.TerminationMessages)
	if h.Stopping != nil {
		s := *h.Stopping
		h.Stopping = &s
	}
	return in
}

// laws returns a property for rapid: After random events in random order, no decision breaks a law.
// Then all failures end, and the desired state must be reached.
func laws() func(*rapid.T) {
	kinds := slices.Sorted(maps.Keys(happenings))
	for range 3 { // most steps are results of effects
		kinds = append(kinds, "complete", "complete", "complete", "observe", "order")
	}
	return func(t *rapid.T) {
		pods := genPods(t)
		w := newWorld()
		w.in.Node.DeadContainers = DeadContainerPolicy{
			MinAge: time.Duration(rapid.IntRange(0, 1).Draw(t, "minAge")) * time.Minute, Extra: rapid.IntRange(-1, 2).Draw(t, "extra"),
		}
		w.messages = rapid.SampledFrom([]string{"", "/dev/termination-log"}).Draw(t, "messages")
		if rapid.Bool().Draw(t, "runs already") { // because few pods would run after random events alone
			w.calm(t, pods[0])
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			o := genOp(t, kinds)
			happenings[o.kind](w, o, pods)
			w.decideLawfully(t)
		}
		var desired *manifest.Pod
		if n := rapid.IntRange(0, len(pods)).Draw(t, "desired"); n < len(pods) {
			desired = pods[n]
		}
		w.calm(t, desired)
		w.checkEnd(t, desired)
	}
}

// TestLaws checks the laws for random pods and events.
func TestLaws(t *testing.T) { rapid.Check(t, laws()) }

// FuzzNext checks the laws for events that the fuzzer chooses.
func FuzzNext(f *testing.F) { f.Fuzz(rapid.MakeFuzz(laws())) }

// calm makes all effects succeed and advances the time until nothing is left to do.
func (w *world) calm(t *rapid.T, desired *manifest.Pod) {
	happenings["unforeign"](w, op{}, nil)
	w.images, w.volumes, w.unreported = map[string]error{}, nil, map[string]bool{}
	for hash, o := range w.objects {
		o.MissingMessage = ""
		w.objects[hash] = o
	}
	w.in.Node = Node{RuntimeReachable: true, RuntimeReady: true, NetworkReady: true, DeadContainers: w.in.Node.DeadContainers}
	w.in.Verdict, w.in.SourcesRead, w.in.ForceStop = Verdict{}, true, false
	w.order(desired)
	for range 20 {
		w.observe()
		if _, quiet := w.settle(time.Hour, func(Decision) { w.check(t, w.in) }, func(Action) {}); !quiet {
			t.Fatalf("actions remain after an hour, want a decision without actions:\n%s", w.decide())
		}
		if !w.endInits() {
			return
		}
	}
	t.Fatalf("init containers still run after 20 rounds, want all completed")
}

// endInits makes the running init containers succeed and reports whether there were any.
func (w *world) endInits() (any bool) {
	for {
		c := w.nth(0, func(c *runtime.Container) bool {
			kind, _ := recordedKind(c)
			return kind == KindInit && c.State == runtime.Running
		})
		if c == nil {
			return any
		}
		w.end(c, 0, "")
		any = true
	}
}

// checkEnd fails the test unless the desired state is reached.
func (w *world) checkEnd(t *rapid.T, desired *manifest.Pod) {
	d := w.decide()
	if desired == nil {
		if !d.FullyRemoved || len(w.machine)+len(w.in.PodDirs) > 0 {
			t.Fatalf("no version is desired: got sandboxes %v and directories %v, want none\n%s", w.machine, w.in.PodDirs, d)
		}
		return
	}
	if w.in.Desired.Hash != desired.Hash || w.in.Successor != nil || d.FullyRemoved {
		t.Fatalf("desired version: got %s, want %s, without a successor and not fully removed\n%s", w.in.Desired.Hash, desired.Hash, d)
	}
	for _, dir := range w.in.PodDirs {
		if dir.UID != desired.UID {
			t.Fatalf("directory of another version with UID %s exists, want it removed", dir.UID)
		}
	}
	lives := slices.DeleteFunc(cloneAll(w.machine), func(i runtime.Incarnation) bool { return !IsLive(&i) })
	if d.Phase == PhaseCleanedUp {
		isEvicted := w.in.History.Finished != nil && w.in.History.Finished.Reason == ReasonEvicted
		if len(lives) > 0 || cannotFinish(&desired.Object.Spec) && !isEvicted {
			t.Fatalf("pod in phase %s: got running sandboxes %v, want none; pod can never finish: got %t, want false\n%s", d.Phase, lives, cannotFinish(&desired.Object.Spec), d)
		}
		return
	}
	if len(lives) != 1 || !lives[0].Ready || !IsCreatedFrom(&lives[0], desired) {
		t.Fatalf("got running sandboxes %v, want one that is ready, of version %s\n%s", lives, desired.Hash, d)
	}
	w.checkRunning(t, d, &lives[0])
}

// cannotFinish reports whether a pod can never finish. This is the case if all init containers and at
// least one regular container are restarted after each exit. Any other init container could make
// the pod fail.
func cannotFinish(spec *v1.PodSpec) bool {
	restarts := func(c v1.Container) bool {
		return manifest.EffectiveRestartPolicy(spec, &c) == v1.RestartPolicyAlways
	}
	return !slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return !restarts(c) }) && slices.ContainsFunc(spec.Containers, restarts)
}

// checkRunning fails the test unless each desired container runs exactly once in its desired size.
// Its postStart hook must have run, and its probes must have passed. The volumes must have the
// content of the newest objects.
func (w *world) checkRunning(t *rapid.T, d Decision, inc *runtime.Incarnation) {
	if want := w.objects[w.in.Desired.Hash].FilesDigest; want != "" && w.written[inc.UID] != want {
		t.Fatalf("digest of the files on disk: got %q, want %q\n%s", w.written[inc.UID], want, d)
	}
	if size, made := w.sizes[inc.ID]; made && size != w.in.Desired.PodSize() {
		t.Fatalf("got pod size %s, want %s\n%s", size, w.in.Desired.PodSize(), d)
	}
	for _, c := range runningContainers(inc) {
		if size, made := w.sizes[c.ID]; made && size != w.in.Desired.ContainerHashes[c.Name].Resources {
			t.Fatalf("container %s: got size %s, want %s\n%s", c.Name, size, w.in.Desired.ContainerHashes[c.Name].Resources, d)
		}
	}
	if err := w.checkEphemeral(); err != nil {
		t.Fatalf("%v\n%s", err, d)
	}
	runs := map[string]int{}
	for _, c := range runningContainers(inc) {
		runs[c.Name]++
	}
	f := newFacts(&w.in)
	for i := range f.containers {
		m := &f.containers[i]
		want := 1
		if m.kind == KindInit || f.isCompleted(m) {
			want = 0
		}
		if runs[m.spec.Name] != want {
			t.Fatalf("container %s: got %d running, want %d\n%s", m.spec.Name, runs[m.spec.Name], want, d)
		}
		if want == 1 && f.isHookPending(m) {
			t.Fatalf("container %s: got a postStart hook that has not run, want it done\n%s", m.spec.Name, d)
		}
		for _, kind := range probeKinds {
			if want == 1 && !f.hasPassed(m, kind) {
				t.Fatalf("container %s: state of the %s probe: got %+v, want passed\n%s", m.spec.Name, kind, f.probeState(m, kind), d)
			}
		}
	}
}
