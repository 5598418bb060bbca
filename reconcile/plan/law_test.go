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

// longestWait is more than any single wait.
const longestWait = backoffMax

// broken tells which law a decision breaks; nil when none.
func broken(in Input, d Decision) error {
	subjects := map[string]bool{}
	for _, a := range d.Actions {
		if subjects[a.Subject()] {
			return fmt.Errorf("two actions of %s", a.Subject())
		}
		subjects[a.Subject()] = true
		if a, ok := a.(Probe); ok {
			if err := asked(in, d, a); err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
			continue
		}
		if err := unfounded(in, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	begins := func(a Action) bool { return in.InFlight[a.Subject()] != a }
	switch {
	case d.Rule == "":
		return fmt.Errorf("no rule")
	case in.Desired == nil && !in.Certain && slices.ContainsFunc(d.Actions, begins):
		return fmt.Errorf("acts, though nobody knows what is wanted")
	case !in.Node.Reachable && slices.ContainsFunc(d.Actions, begins):
		return fmt.Errorf("acts, though the runtime does not answer")
	case d.Done && (in.Desired != nil || !in.Certain || in.Unseen || sortFacts(&in).busy() || len(in.Dirs)+len(in.Used) > 0 || slices.ContainsFunc(in.Observed, ours)):
		return fmt.Errorf("done, though something is left")
	case !d.Wake.IsZero() && !d.Wake.After(in.Now):
		return fmt.Errorf("wakes at once, for ever")
	case d.Wake.Sub(in.Now) > longestWait && !d.Wake.IsZero():
		return fmt.Errorf("waits for %s", d.Wake.Sub(in.Now))
	case !d.ProbeAt.IsZero() && (!d.ProbeAt.After(in.Now) || d.ProbeAt.Sub(in.Now) > longestProbe(in)):
		return fmt.Errorf("probes in %s", d.ProbeAt.Sub(in.Now))
	}
	if err := guessed(in, d); err != nil {
		return err
	}
	if err := patient(in, d); err != nil {
		return err
	}
	return askedOn(in, d)
}

// guessed: nothing is decided by an exit code that is not known. Codes are tried out:
// had the containers ended with another one, the pod would not have ended.
func guessed(in Input, d Decision) error {
	if d.Finished == nil || d.Finished.Reason != "" || d.Finished.Failed && sortFacts(&in).failedInit() != nil || in.Desired.Over() {
		return nil
	}
	missing := false
	for _, code := range []int32{0, 1} {
		tried := in
		tried.Observed = cloneAll(in.Observed)
		for i := range tried.Observed {
			for j := range tried.Observed[i].Containers {
				if c := &tried.Observed[i].Containers[j]; c.State == runtime.ExitUnknown {
					c.State, c.ExitCode, missing = runtime.Exited, code, true
				}
			}
		}
		if end := Next(tried).Finished; missing && (end == nil || end.Failed != d.Finished.Failed) {
			return fmt.Errorf("finished, failed %t, though an exit code is unknown and %d would be another end", d.Finished.Failed, code)
		}
	}
	return nil
}

// patient: no container waits for longer than its own delay.
func patient(in Input, d Decision) error {
	f := sortFacts(&in)
	for _, s := range d.Steps {
		for i := range f.members {
			m := &f.members[i]
			if m.spec.Name == s.Container && s.Rule == RuleCrashBackOff && s.Until.Sub(in.Now) > backoff(crashes(m.last), 0) {
				return fmt.Errorf("%s waits %s", s.Container, s.Until.Sub(in.Now))
			}
		}
	}
	return nil
}

func ours(inc runtime.Incarnation) bool { return !inc.Foreign }

// unfounded says what an action may not rest on.
func unfounded(in Input, a Action) error {
	if in.InFlight[a.Subject()] == a {
		return nil // it was founded when it began
	}
	if v := a.Verb(); v == "run" || v == "start" || v == "prepare" {
		if remove := (RemoveDir{UID: in.Desired.UID}); in.InFlight[remove.Subject()] == Action(remove) {
			return fmt.Errorf("while what is left of its uid is removed")
		}
	}
	switch a := a.(type) {
	case StartContainer:
		if !slices.ContainsFunc(in.Observed, func(inc runtime.Incarnation) bool {
			return inc.ID == a.SandboxID && inc.Ready && Runs(in.Desired, &inc)
		}) {
			return fmt.Errorf("not in a ready sandbox of this version")
		}
		if in.Unseen && a.CreatedID == "" && in.InFlight[a.Subject()] == nil {
			return fmt.Errorf("the last start was not looked at")
		}
		ephemeral, err := targeted(in, a)
		if !ephemeral {
			err = inTurn(in, a)
		}
		if err != nil {
			return err
		}
		return alone(in)
	case RunSandbox:
		if in.Unseen {
			return fmt.Errorf("the last try was not looked at")
		}
		if in.Objects.Missing != "" && (sortFacts(&in).cur == nil || !sortFacts(&in).cur.Ready) {
			return fmt.Errorf("without what it needs")
		}
		return alone(in)
	case StopContainer:
		if err := hooked(in, a); err != nil {
			return err
		}
		return measured(in, a)
	case PreStop:
		return preStopped(in, a)
	case PostStart:
		return postStarted(in, a)
	case StopSandbox:
		for _, b := range in.InFlight {
			if start, ok := b.(StartContainer); ok && start.SandboxID == a.ID && slices.ContainsFunc(in.Observed, func(inc runtime.Incarnation) bool {
				return inc.ID == a.ID && inc.Ready
			}) {
				return fmt.Errorf("%s is under way", b)
			}
		}
	case ResizeContainer:
		f := sortFacts(&in)
		for i := range f.members {
			if m := &f.members[i]; m.spec.Name == a.Container && m.is(runtime.Running) && m.last.ID == a.ID {
				return nil
			}
		}
		return fmt.Errorf("it does not run")
	case RemoveSandbox:
		return dead(in, a.ID)
	case RemoveDir:
		if in.Used[a.UID] {
			return fmt.Errorf("a start that was given up uses it")
		}
		for _, inc := range in.Observed {
			if inc.UID == a.UID {
				return fmt.Errorf("a sandbox uses it")
			}
		}
		for _, b := range in.InFlight {
			if b.Verb() == "run" || b.Verb() == "start" {
				return fmt.Errorf("%s is under way", b)
			}
		}
	case ReleaseVolumes:
		if in.Used[a.UID] {
			return fmt.Errorf("a start that was given up uses them")
		}
		for _, inc := range in.Observed {
			if inc.UID == a.UID && Live(&inc) {
				return fmt.Errorf("something that runs uses them")
			}
		}
	}
	return nil
}

// alone: nothing of ours of this name runs but in one sandbox of the version.
func alone(in Input) error {
	n := 0
	for _, inc := range in.Observed {
		switch {
		case inc.Foreign || !Live(&inc):
		case !Runs(in.Desired, &inc):
			return fmt.Errorf("another version runs")
		default:
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("this version runs twice")
	}
	return nil
}

// inTurn: init containers before it have ended well and sidecars have started,
// unless a container behind them proves that they once did.
func inTurn(in Input, a StartContainer) error {
	f := sortFacts(&in)
	for i := range f.members {
		m := &f.members[i]
		switch {
		case m.spec.Name == a.Container:
			return nil
		case m.kind != Regular && f.regularMade():
		case m.kind == Init && !(m.is(runtime.Exited) && m.last.ExitCode == 0),
			m.kind == Sidecar && !m.started,
			m.kind == Sidecar && f.hookPending(m),
			m.kind == Regular && m.is(runtime.Running) && f.hookPending(m),
			m.kind == Sidecar && m.spec.StartupProbe != nil && f.trial(m, Startup).Health != Passed:
			return fmt.Errorf("before %s", m.spec.Name)
		}
	}
	return nil
}

// handsOver tells what is wrong with giving up the version in force.
func handsOver(in Input) error {
	f := sortFacts(&in)
	f.desired = in.Desired
	if f.cur == nil || len(running(f.cur)) == 0 || f.outcome() != nil {
		return nil
	}
	if in.Verdict.Answer == Reject {
		return fmt.Errorf("a version that runs is given up for one that is rejected")
	}
	if in.NextObjects.Missing != "" {
		return fmt.Errorf("a version that runs is given up for one that lacks something")
	}
	for _, c := range containersOf(&in.Successor.Spec.Spec) {
		if img := in.History.Next[c.Name]; img.Name != c.Image || img.Ref == "" {
			return fmt.Errorf("a version that runs is given up, though %s of the next has no image", c.Name)
		}
	}
	return nil
}

// measured: a container gets no more than its pod's grace, and two seconds of it.
func measured(in Input, a StopContainer) error {
	for _, inc := range in.Observed {
		for _, c := range inc.Containers {
			if own, failed := ownGrace(in, &c); failed && strings.Contains(a.Why, "probe failed") && c.ID == a.ID {
				if a.Grace > max(own, minGrace) || own > 0 && a.Grace < minGrace {
					return fmt.Errorf("of the probe's own %s", own)
				}
				continue
			}
			if g := graceOf(&inc); c.ID == a.ID && (a.Grace > max(g, minGrace) || g > 0 && a.Grace < minGrace && in.History.Endings[a.ID].Since.IsZero()) {
				return fmt.Errorf("of %s", graceOf(&inc))
			}
		}
	}
	return nil
}

func dead(in Input, id string) error {
	for _, inc := range in.Observed {
		if inc.ID == id && (Live(&inc) || inc.Foreign) {
			return fmt.Errorf("it lives, or is not ours")
		}
	}
	return nil
}

// lawful decides and holds the decision against the laws.
func (w *world) lawful(t *rapid.T) Decision {
	w.note()
	w.check(t, w.in)
	stopped := w.in.History.Stopping
	d := w.decide()
	w.check(t, w.in)
	if strings.HasPrefix(d.Why, "changed") && w.in.History.Stopping != stopped && w.in.Verdict.Answer != Reject {
		for _, c := range containersOf(&w.in.Desired.Spec.Spec) {
			if inc := w.sandbox(w.in.History.Stopping.SandboxID); w.in.History.Containers[c.Name].Image.Ref == "" && len(running(inc)) > 0 {
				t.Fatalf("a version that runs is stopped, though %s of the next has no image", c.Name)
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
		t.Fatalf("Next wrote to its input (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(d, Next(in)); diff != "" {
		t.Fatalf("Next decides otherwise the second time (-first +second)\n%s", diff)
	}
	if d.Succeed {
		if err := handsOver(in); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := broken(in, d); err != nil {
		t.Fatalf("%v\n%s%+v", err, d, in.Observed)
	}
}

func deepCopy(in Input) Input {
	in.Observed = cloneAll(in.Observed)
	in.Dirs = slices.Clone(in.Dirs)
	in.InFlight, in.Used = maps.Clone(in.InFlight), maps.Clone(in.Used)
	for _, p := range []**manifest.Pod{&in.Desired, &in.Successor, &in.Leaving} {
		if *p != nil {
			c := **p
			c.Spec = c.Spec.DeepCopy()
			*p = &c
		}
	}
	h := &in.History
	h.Containers, h.SeenExit, h.Next = maps.Clone(h.Containers), maps.Clone(h.SeenExit), maps.Clone(h.Next)
	h.Released, h.Cleanup = maps.Clone(h.Released), maps.Clone(h.Cleanup)
	h.Probed, h.Endings, h.Said = maps.Clone(h.Probed), maps.Clone(h.Endings), maps.Clone(h.Said)
	if h.Stopping != nil {
		s := *h.Stopping
		h.Stopping = &s
	}
	return in
}

// laws: whatever happens in whatever order, no decision breaks a law, and once
// nothing goes wrong any more the name comes to what is wanted.
func laws() func(*rapid.T) {
	kinds := slices.Sorted(maps.Keys(happenings))
	for range 3 { // most steps are effects that end
		kinds = append(kinds, "land", "land", "land", "observe", "want")
	}
	return func(t *rapid.T) {
		pods := genPods(t)
		w := newWorld()
		w.messages = rapid.SampledFrom([]string{"", "/dev/termination-log"}).Draw(t, "messages")
		if rapid.Bool().Draw(t, "runs already") { // few come so far by chance
			w.calm(t, pods[0])
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			o := genOp(t, kinds)
			happenings[o.kind](w, o, pods)
			w.lawful(t)
		}
		var wanted *manifest.Pod
		if n := rapid.IntRange(0, len(pods)).Draw(t, "wanted"); n < len(pods) {
			wanted = pods[n]
		}
		w.calm(t, wanted)
		w.checkEnd(t, wanted)
	}
}

func TestLaws(t *testing.T) { rapid.Check(t, laws()) }

// FuzzNext lets the fuzzer choose what happens.
func FuzzNext(f *testing.F) { f.Fuzz(rapid.MakeFuzz(laws())) }

// calm lets everything go well from now on.
func (w *world) calm(t *rapid.T, wanted *manifest.Pod) {
	happenings["unforeign"](w, op{}, nil)
	w.images, w.volumes, w.unreported = map[string]error{}, nil, map[string]bool{}
	for hash, o := range w.objects {
		o.Missing = ""
		w.objects[hash] = o
	}
	w.in.Node = Node{Reachable: true, Ready: true, NetworkReady: true}
	w.in.Verdict, w.in.Certain, w.in.Hurry = Verdict{}, true, false
	w.want(wanted)
	for range 20 {
		w.observe()
		if _, quiet := w.settle(time.Hour, func(Decision) { w.check(t, w.in) }, func(Action) {}); !quiet {
			t.Fatalf("there is no end to it:\n%s", w.decide())
		}
		if !w.endInits() {
			return
		}
	}
	t.Fatalf("init never ends")
}

// endInits lets every ordinary init container that runs end well.
func (w *world) endInits() (any bool) {
	for {
		c := w.nth(0, func(c *runtime.Container) bool {
			kind, _ := kindOfRecord(c)
			return kind == Init && c.State == runtime.Running
		})
		if c == nil {
			return any
		}
		w.end(c, 0, "")
		any = true
	}
}

// checkEnd holds what is there against what is wanted.
func (w *world) checkEnd(t *rapid.T, wanted *manifest.Pod) {
	d := w.decide()
	if wanted == nil {
		if !d.Done || len(w.machine)+len(w.in.Dirs) > 0 {
			t.Fatalf("nothing is wanted, yet there are %v and %v\n%s", w.machine, w.in.Dirs, d)
		}
		return
	}
	if w.in.Desired.Hash != wanted.Hash || w.in.Successor != nil || d.Done {
		t.Fatalf("the version in force is %s, not %s\n%s", w.in.Desired.Hash, wanted.Hash, d)
	}
	for _, dir := range w.in.Dirs {
		if dir.UID != wanted.UID {
			t.Fatalf("directory %s is left", dir.UID)
		}
	}
	lives := slices.DeleteFunc(cloneAll(w.machine), func(i runtime.Incarnation) bool { return !Live(&i) })
	if d.Phase == PhaseRest {
		if len(lives) > 0 || neverEnds(&wanted.Spec.Spec) {
			t.Fatalf("rests, and %v runs\n%s", lives, d)
		}
		return
	}
	if len(lives) != 1 || !lives[0].Ready || !Runs(wanted, &lives[0]) {
		t.Fatalf("there are %v, not one sandbox of %s\n%s", lives, wanted.Hash, d)
	}
	w.checkRunning(t, d, &lives[0])
}

// neverEnds: no container can end for good, nor fail before the others start.
func neverEnds(spec *v1.PodSpec) bool {
	restarts := func(c v1.Container) bool {
		return manifest.RestartPolicyOf(spec, &c) == v1.RestartPolicyAlways
	}
	return !slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return !restarts(c) }) && slices.ContainsFunc(spec.Containers, restarts)
}

// checkRunning: each container that should runs exactly once, and the files are
// those of the newest objects.
func (w *world) checkRunning(t *rapid.T, d Decision, inc *runtime.Incarnation) {
	if want := w.objects[w.in.Desired.Hash].Files; want != "" && w.written[inc.UID] != want {
		t.Fatalf("the files are those of %q, not %q\n%s", w.written[inc.UID], want, d)
	}
	if size, made := w.sizes[inc.ID]; made && size != w.in.Desired.PodSize() {
		t.Fatalf("the pod's size is %s, not %s\n%s", size, w.in.Desired.PodSize(), d)
	}
	for _, c := range running(inc) {
		if size, made := w.sizes[c.ID]; made && size != w.in.Desired.Containers[c.Name].Size {
			t.Fatalf("the size of %s is %s, not %s\n%s", c.Name, size, w.in.Desired.Containers[c.Name].Size, d)
		}
	}
	if err := w.checkEphemeral(); err != nil {
		t.Fatalf("%v\n%s", err, d)
	}
	runs := map[string]int{}
	for _, c := range running(inc) {
		runs[c.Name]++
	}
	f := sortFacts(&w.in)
	for i := range f.members {
		m := &f.members[i]
		want := 1
		if m.kind == Init || f.completed(m) {
			want = 0
		}
		if runs[m.spec.Name] != want {
			t.Fatalf("%s runs %d times, not %d\n%s", m.spec.Name, runs[m.spec.Name], want, d)
		}
		if want == 1 && f.hookPending(m) {
			t.Fatalf("the postStart hook of %s is not over\n%s", m.spec.Name, d)
		}
		for _, kind := range probeKinds {
			if want == 1 && !f.passed(m, kind) {
				t.Fatalf("the %s probe of %s has not passed: %+v\n%s", kind, m.spec.Name, f.trial(m, kind), d)
			}
		}
	}
}
