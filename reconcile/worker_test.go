package reconcile

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/runtime"
)

// requests lists whether each requested observation was urgent.
type requests []bool

// bare returns a worker for p without goroutines, and the observations that it requested.
func bare(p *manifest.Pod) (w *worker, refreshed *requests) {
	refreshed = new(requests)
	w = &worker{
		refresh: func(_ types.NamespacedName, urgent bool) { *refreshed = append(*refreshed, urgent) },
		log:     slog.New(slog.DiscardHandler), flights: map[string]flight{}, past: map[types.UID]journal{},
	}
	w.setDesired(p)
	return w, refreshed
}

func barePod(containers ...string) *manifest.Pod {
	p := &manifest.Pod{UID: "u", Hash: "v1:h", Spec: &v1.Pod{}}
	for _, name := range containers {
		p.Spec.Spec.Containers = append(p.Spec.Spec.Containers, v1.Container{Name: name, Image: "i:1"})
	}
	return p
}

func seen(ready bool, containers ...runtime.Container) *runtime.Pod {
	return &runtime.Pod{Incarnations: []runtime.Incarnation{{
		Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: ready, Annotations: map[string]string{runtime.AnnotationHash: "v1:h"}},
		Containers: containers,
	}}}
}

// landed adds an action in progress and ends it.
func (w *worker) landed(f effect.Result) {
	w.flights[f.Action.Subject()] = flight{action: f.Action, since: f.Ended, cancel: func() {}}
	w.handleResult(f)
}

// TestBarrierOrder checks that the barrier is the newest end of an effect, even if results
// arrive in another order.
func TestBarrierOrder(t *testing.T) {
	p := barePod("a", "b")
	w, refreshed := bare(p)
	now := time.Now()
	w.applyObservation(seen(true), now)
	started := func(name string, after time.Duration) effect.Result {
		return effect.Result{
			Action: plan.StartContainer{Container: name, SandboxID: "s"}, Version: p, Ended: now.Add(after),
			Value: effect.StartedContainer{Container: &runtime.Container{ID: name, SandboxID: "s", Name: name, State: runtime.Running}},
		}
	}
	w.landed(started("b", 2*time.Second))
	w.landed(started("a", time.Second))
	*refreshed = nil
	w.applyObservation(seen(true, runtime.Container{ID: "a", Name: "a", State: runtime.Running}), now.Add(1500*time.Millisecond))
	if n := len(w.in.Observed[0].Containers); n != 2 || len(*refreshed) != 1 {
		t.Errorf("%d containers and %d questions after an observation that began before b was started, want 2 and 1", n, len(*refreshed))
	}
}

// TestObserve_Urgent: an observation that is older than the newest effect causes an urgent
// request for another one only if it shows that something has ended, or if a decision waits.
func TestObserve_Urgent(t *testing.T) {
	running := runtime.Container{ID: "a", Name: "a", State: runtime.Running}
	exited := runtime.Container{ID: "a", Name: "a", State: runtime.Exited}
	for name, test := range map[string]struct {
		old    *runtime.Pod
		unseen bool
		want   bool
	}{
		"nothing has ended":         {old: seen(true, running)},
		"before the container":      {old: seen(true)},
		"before the sandbox":        {old: nil},
		"the container has ended":   {old: seen(true, exited), want: true},
		"the sandbox has ended":     {old: seen(false, running), want: true},
		"a container may be unseen": {old: seen(true, running), unseen: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, refreshed := bare(barePod("a", "b"))
			now := time.Now()
			w.applyObservation(seen(true, running), now)
			w.in.Unobserved, w.effectEnd = test.unseen, now.Add(time.Second)
			w.applyObservation(test.old, now)
			if len(*refreshed) != 1 || (*refreshed)[0] != test.want {
				t.Errorf("requests that are urgent: %v, want one: %t", *refreshed, test.want)
			}
		})
	}
}

// TestUnconfirmed checks that an effect is unconfirmed until an observation that began
// after its end, so that a pod that looks the same as before the effect is passed on, too.
func TestUnconfirmed(t *testing.T) {
	w, _ := bare(barePod("a"))
	now := time.Now()
	observed := seen(true)
	w.applyObservation(observed, now)
	if w.unconfirmed.Load() {
		t.Error("unconfirmed before any effect")
	}
	w.landed(effect.Result{
		Action: plan.StartContainer{Container: "a", SandboxID: "s"}, Version: w.in.Desired, Ended: now.Add(2 * time.Second),
		Value: effect.StartedContainer{Container: &runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running}},
	})
	for _, step := range []struct {
		asOf        time.Duration
		unconfirmed bool
		containers  int
	}{{time.Second, true, 1}, {3 * time.Second, false, 0}} {
		w.applyObservation(observed, now.Add(step.asOf))
		if got, n := w.unconfirmed.Load(), len(w.in.Observed[0].Containers); got != step.unconfirmed || n != step.containers {
			t.Errorf("observed %s after the start: unconfirmed %t with %d containers, want %t and %d", step.asOf, got, n, step.unconfirmed, step.containers)
		}
	}
}

// TestBarrier_NotObservable checks that the barrier does not drop an observation because of
// an action that changes nothing in the runtime.
func TestBarrier_NotObservable(t *testing.T) {
	p := barePod("a")
	w, refreshed := bare(p)
	now := time.Now()
	for _, a := range []plan.Action{plan.EnsureImage{Container: "a"}, plan.PrepareVolumes{UID: p.UID}} {
		w.landed(effect.Result{Action: a, Version: p, Ended: now.Add(time.Second)})
	}
	w.applyObservation(seen(true), now)
	if len(w.in.Observed) != 1 || len(*refreshed) != 0 {
		t.Errorf("observed %+v and asked %d times, want the sandbox and no question", w.in.Observed, len(*refreshed))
	}
}

// TestSandboxListedEarly checks that containers stay known that were started in a sandbox
// before the call that created it returned.
func TestSandboxListedEarly(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	now := time.Now()
	pod := seen(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running})
	w.applyObservation(pod, now)
	w.landed(effect.Result{Action: plan.RunSandbox{}, Version: p, Ended: now.Add(1), Value: effect.NewSandbox{Sandbox: &pod.Incarnations[0].Sandbox}})
	if n := len(w.in.Observed); n != 1 || len(w.in.Observed[0].Containers) != 1 {
		t.Errorf("observed %+v, want the sandbox once with its container", w.in.Observed)
	}
}

// TestSandboxNameIsUsedOnce checks that a sandbox does not get the name of a removed one of
// the same pod UID, also after an edit.
func TestSandboxNameIsUsedOnce(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	now := time.Now()
	w.applyObservation(seen(false), now)
	w.landed(effect.Result{Action: plan.RemoveSandbox{ID: "s"}, Version: p, Ended: now.Add(1)})
	if got := w.in.History.SandboxAttempt; got != 1 {
		t.Errorf("after the removal of attempt 0 the next attempt is %d, want 1", got)
	}
	edited := barePod("a")
	edited.Hash = "v1:other"
	w.setVersion(edited)
	if got := w.in.History.SandboxAttempt; got != 1 {
		t.Errorf("after an edit the next attempt is %d, want 1", got)
	}
	other := barePod("a")
	other.UID = "other"
	w.setVersion(other)
	if got := w.in.History.SandboxAttempt; got != 0 {
		t.Errorf("the first attempt of another UID is %d, want 0", got)
	}
}

// TestForgetRemoved checks that the history of sandboxes, containers and failures is
// forgotten with them.
func TestForgetRemoved(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	now := time.Now()
	w.applyObservation(seen(true, runtime.Container{ID: "a", Name: "a", State: runtime.Exited}), now)
	w.recordObserved(now)
	shared := w.in
	w.landed(effect.Result{Action: plan.StopSandbox{ID: "s"}, Version: p, Ended: now.Add(1)})
	w.landed(effect.Result{Action: plan.RemoveSandbox{ID: "s"}, Version: p, Ended: now.Add(2), Err: context.DeadlineExceeded})
	w.applyObservation(nil, now.Add(3))
	w.in.Dirs = nil
	w.recordObserved(now.Add(3))
	if h := w.in.History; len(h.SeenExit)+len(h.Released)+len(h.Cleanup) > 0 {
		t.Errorf("kept: %v %v %v", h.SeenExit, h.Released, h.Cleanup)
	}
	if len(shared.History.SeenExit) != 1 {
		t.Error("a map that was handed out was written to")
	}
}

// TestExits_OtherVersion checks that, with a fixed UID, the exits of one version's
// containers do not count for the next version.
func TestExits_OtherVersion(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	pod := seen(false, runtime.Container{ID: "a", Name: "a", State: runtime.Exited})
	pod.Incarnations[0].Annotations = map[string]string{runtime.AnnotationHash: "v1:other"}
	w.applyObservation(pod, time.Now())
	w.recordObserved(time.Now())
	if e := w.in.History.Containers["a"].LastExit; e != nil {
		t.Errorf("took %+v for an end of this version", e)
	}
}

// TestRequestRestart_OtherSandbox checks that a container of another sandbox with the same name
// is not restarted.
func TestRequestRestart_OtherSandbox(t *testing.T) {
	w, _ := bare(barePod("a"))
	pod := seen(true, runtime.Container{ID: "mine", Name: "a", State: runtime.Running})
	theirs := seen(true, runtime.Container{ID: "theirs", Name: "a", State: runtime.Running}).Incarnations[0]
	theirs.ID, theirs.Foreign = "f", true
	pod.Incarnations = append(pod.Incarnations, theirs)
	w.applyObservation(pod, time.Now())
	w.requestRestart("a")
	if got := w.in.History.Containers["a"].RestartID; got != "mine" {
		t.Errorf("restarts %q, want mine", got)
	}
}

// TestEqualVersion checks that a result applies to an equal version that was read again
// from its source.
func TestEqualVersion(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	again := *p
	w.setDesired(&again)
	w.landed(effect.Result{Action: plan.EnsureImage{Container: "a", Image: "i:1"}, Version: p, Ended: time.Now(), Value: effect.EnsuredImage{Image: effect.Image{Ref: "sha256:1"}}})
	w.landed(effect.Result{Action: plan.PrepareVolumes{UID: "u"}, Version: p, Ended: time.Now()})
	if h := w.in.History; h.Containers["a"].Image.Ref != "sha256:1" || !h.VolumesReady {
		t.Errorf("forgot what came of it: %+v", h)
	}
}

// TestProbe_SameResult checks that a probe attempt with an unchanged result makes no report and
// moves no barrier, and that another one makes a report.
func TestProbe_SameResult(t *testing.T) {
	p := barePod("a")
	p.Spec.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 2}
	w, _ := bare(p)
	w.journals = Journals{Root: t.TempDir()}
	w.in.Node = plan.Node{Reachable: true, Ready: true, NetworkReady: true}
	reports := 0
	w.report = func(r Report) {
		if !r.eventsOnly {
			reports++
		}
	}
	now := time.Now()
	w.applyObservation(seen(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running}), now)
	action := plan.Probe{Container: "a", ID: "a", Kind: plan.Readiness}
	attempt := func(passed bool) {
		f := effect.Result{Action: action, Version: p, Began: time.Now(), Ended: time.Now()}
		f.Value = effect.ProbeResult{Result: probe.Result{Passed: passed, Message: time.Now().String()}}
		w.flights[action.Subject()] = flight{action: action, since: now, cancel: func() {}}
		w.decide(t.Context(), false)
		w.decide(t.Context(), w.handleResult(f))
	}
	w.flights[action.Subject()] = flight{action: action, since: now, cancel: func() {}}
	w.decide(t.Context(), true)
	for i, step := range []struct {
		passed  bool
		reports int
	}{{true, 2}, {true, 2}, {false, 2}, {true, 2}, {false, 2}, {false, 3}, {false, 3}, {true, 4}, {true, 4}} {
		attempt(step.passed)
		if reports != step.reports {
			t.Errorf("after attempt %d there are %d reports, want %d", i, reports, step.reports)
		}
	}
	if !w.effectEnd.IsZero() {
		t.Error("an attempt moved the barrier")
	}
}

// TestAdd_NotWritten checks that containers that were refused because the journal could
// not be written are not kept.
func TestAdd_NotWritten(t *testing.T) {
	p := barePod("a")
	p.Key.Name = "web"
	w, _ := bare(p)
	w.key, w.journals, w.hasObserved = p.Key, Journals{Root: t.TempDir()}, true
	inTheWay := filepath.Join(w.journals.Root, "u", journalName)
	if err := os.MkdirAll(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}
	if err := w.add(addition{uid: "u", containers: []v1.EphemeralContainer{c}}); !apierrors.IsInternalError(err) {
		t.Fatalf("got %v", err)
	}
	if n := len(w.past["u"].Ephemeral); n > 0 || w.in.Desired != p {
		t.Errorf("%d are remembered, and wanted is %+v", n, w.in.Desired.Spec.Spec.EphemeralContainers)
	}
}
