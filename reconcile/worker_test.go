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
	"podd/reconcile/plan"
	"podd/runtime"
)

// bare is a worker without goroutines that wants p.
func bare(p *manifest.Pod) (w *worker, refreshed *int) {
	refreshed = new(int)
	w = &worker{
		refresh: func(types.NamespacedName) { *refreshed++ },
		log:     slog.New(slog.DiscardHandler), flights: map[string]flight{}, past: map[types.UID]journal{},
	}
	w.want(p)
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

// land puts an action under way and ends it.
func (w *worker) landed(f fact) {
	w.flights[f.action.Subject()] = flight{action: f.action, since: f.ended, cancel: func() {}}
	w.take(f)
}

// TestBarrierOrder: facts may come in another order than their effects ended in;
// the newest of them is the barrier.
func TestBarrierOrder(t *testing.T) {
	p := barePod("a", "b")
	w, refreshed := bare(p)
	now := time.Now()
	w.observe(seen(true), now)
	started := func(name string, after time.Duration) fact {
		return fact{
			action: plan.StartContainer{Container: name, SandboxID: "s"}, version: p, ended: now.Add(after),
			container: &runtime.Container{ID: name, SandboxID: "s", Name: name, State: runtime.Running},
		}
	}
	w.landed(started("b", 2*time.Second))
	w.landed(started("a", time.Second))
	*refreshed = 0
	w.observe(seen(true, runtime.Container{ID: "a", Name: "a", State: runtime.Running}), now.Add(1500*time.Millisecond))
	if n := len(w.in.Observed[0].Containers); n != 2 || *refreshed != 1 {
		t.Errorf("%d containers and %d questions after an observation that began before b was started, want 2 and 1", n, *refreshed)
	}
}

// TestBarrierOfWhatIsSeen: an observation from before the end of what changes
// nothing in the runtime counts.
func TestBarrierOfWhatIsSeen(t *testing.T) {
	p := barePod("a")
	w, refreshed := bare(p)
	now := time.Now()
	for _, a := range []plan.Action{plan.EnsureImage{Container: "a"}, plan.PrepareVolumes{UID: p.UID}} {
		w.landed(fact{action: a, version: p, ended: now.Add(time.Second)})
	}
	w.observe(seen(true), now)
	if len(w.in.Observed) != 1 || *refreshed != 0 {
		t.Errorf("observed %+v and asked %d times, want the sandbox and no question", w.in.Observed, *refreshed)
	}
}

// TestSandboxListedEarly: a runtime lists a sandbox before the call that made it
// returns; what was started in it meanwhile is not forgotten.
func TestSandboxListedEarly(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	now := time.Now()
	pod := seen(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running})
	w.observe(pod, now)
	w.landed(fact{action: plan.RunSandbox{}, version: p, ended: now.Add(1), sandbox: &pod.Incarnations[0].Sandbox})
	if n := len(w.in.Observed); n != 1 || len(w.in.Observed[0].Containers) != 1 {
		t.Errorf("observed %+v, want the sandbox once with its container", w.in.Observed)
	}
}

// TestNothingKept: what is remembered of sandboxes, containers and failures goes
// with them.
func TestNothingKept(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	now := time.Now()
	w.observe(seen(true, runtime.Container{ID: "a", Name: "a", State: runtime.Exited}), now)
	w.note(now)
	shared := w.in
	w.landed(fact{action: plan.StopSandbox{ID: "s"}, version: p, ended: now.Add(1)})
	w.landed(fact{action: plan.RemoveSandbox{ID: "s"}, version: p, ended: now.Add(2), err: context.DeadlineExceeded})
	w.observe(nil, now.Add(3))
	w.in.Dirs = nil
	w.note(now.Add(3))
	if h := w.in.History; len(h.SeenExit)+len(h.Released)+len(h.Cleanup) > 0 {
		t.Errorf("kept: %v %v %v", h.SeenExit, h.Released, h.Cleanup)
	}
	if len(shared.History.SeenExit) != 1 {
		t.Error("a map that was handed out was written to")
	}
}

// TestOtherVersionsExits: with a fixed uid, the ends of one version's containers
// are not those of the next.
func TestOtherVersionsExits(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	pod := seen(false, runtime.Container{ID: "a", Name: "a", State: runtime.Exited})
	pod.Incarnations[0].Annotations = map[string]string{runtime.AnnotationHash: "v1:other"}
	w.observe(pod, time.Now())
	w.note(time.Now())
	if e := w.in.History.Containers["a"].LastExit; e != nil {
		t.Errorf("took %+v for an end of this version", e)
	}
}

// TestRestartMeansThisVersion: a container of another sandbox with the same name
// is not the one to restart.
func TestRestartMeansThisVersion(t *testing.T) {
	w, _ := bare(barePod("a"))
	pod := seen(true, runtime.Container{ID: "mine", Name: "a", State: runtime.Running})
	theirs := seen(true, runtime.Container{ID: "theirs", Name: "a", State: runtime.Running}).Incarnations[0]
	theirs.ID, theirs.Foreign = "f", true
	pod.Incarnations = append(pod.Incarnations, theirs)
	w.observe(pod, time.Now())
	w.askRestart("a")
	if got := w.in.History.Containers["a"].RestartID; got != "mine" {
		t.Errorf("restarts %q, want mine", got)
	}
}

// TestEqualVersion: the same version as another value, from a source that was
// read again, is the one an effect was for.
func TestEqualVersion(t *testing.T) {
	p := barePod("a")
	w, _ := bare(p)
	again := *p
	w.want(&again)
	w.landed(fact{action: plan.EnsureImage{Container: "a", Image: "i:1"}, version: p, ended: time.Now(), ref: "sha256:1"})
	w.landed(fact{action: plan.PrepareVolumes{UID: "u"}, version: p, ended: time.Now()})
	if h := w.in.History; h.Containers["a"].Image.Ref != "sha256:1" || !h.VolumesReady {
		t.Errorf("forgot what came of it: %+v", h)
	}
}

// TestQuietAttempt: an attempt that says what is known makes no report and moves
// no barrier; one that changes a verdict does the first.
func TestQuietAttempt(t *testing.T) {
	p := barePod("a")
	p.Spec.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 2}
	w, _ := bare(p)
	w.journals = Journals{Root: t.TempDir()}
	w.in.Node = plan.Node{Reachable: true, Ready: true, NetworkReady: true}
	reports := 0
	w.report = func(r Report) {
		if !r.quiet {
			reports++
		}
	}
	now := time.Now()
	w.observe(seen(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running}), now)
	probe := plan.Probe{Container: "a", ID: "a", Kind: plan.Readiness}
	attempt := func(passed bool) {
		f := fact{action: probe, version: p, began: time.Now(), ended: time.Now()}
		f.probe.Passed, f.probe.Message = passed, time.Now().String()
		w.flights[probe.Subject()] = flight{action: probe, since: now, cancel: func() {}}
		w.decide(t.Context(), false)
		w.decide(t.Context(), w.take(f))
	}
	w.flights[probe.Subject()] = flight{action: probe, since: now, cancel: func() {}}
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

// TestAddNotRemembered: what was refused because it could not be remembered is in
// no memory.
func TestAddNotRemembered(t *testing.T) {
	p := barePod("a")
	p.Key.Name = "web"
	w, _ := bare(p)
	w.key, w.journals, w.looked = p.Key, Journals{Root: t.TempDir()}, true
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
