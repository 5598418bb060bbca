package reconcile

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/journal"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/reconcile/state"
	"podd/runtime"
)

// requests lists whether each requested observation was urgent.
type requests []bool

// bareWorker returns a worker for p without goroutines, and a list to which the worker adds the
// observations that it requests.
func bareWorker(p *manifest.Pod) (w *worker, refreshed *requests) {
	refreshed = new(requests)
	w = &worker{
		requestObservation: func(_ types.NamespacedName, urgent bool) { *refreshed = append(*refreshed, urgent) },
		log:                slog.New(slog.DiscardHandler), actions: map[string]*runningAction{}, state: state.New(state.InitialFacts{Key: p.Key}),
	}
	w.receive(&workerMessage{order: state.Order{Desired: p}})
	return w, refreshed
}

func barePod(containers ...string) *manifest.Pod {
	p := &manifest.Pod{UID: "u", Hash: "v1:h", Object: &v1.Pod{}}
	for _, name := range containers {
		p.Object.Spec.Containers = append(p.Object.Spec.Containers, v1.Container{Name: name, Image: "i:1"})
	}
	return p
}

func observedPod(ready bool, containers ...runtime.Container) *runtime.Pod {
	return &runtime.Pod{Incarnations: []runtime.Incarnation{{
		Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: ready, Annotations: map[string]string{runtime.AnnotationPodHash: "v1:h"}},
		Containers: containers,
	}}}
}

// observe applies an observation of the pod.
func (w *worker) observe(p *runtime.Pod, asOf time.Time) {
	w.receive(&workerMessage{order: w.state.Order, requests: state.Requests{Observation: &state.Observation{Pod: p, AsOf: asOf}}})
}

// completeAction adds an action in progress and ends it with the result f.
func (w *worker) completeAction(f result.Result) {
	w.actions[f.Action.Subject()] = &runningAction{action: f.Action, since: f.Ended, cancel: func() {}}
	w.handleResult(&actionResult{Result: f})
}

// TestNeedsConfirmation checks that needsConfirmation is true from the end of an effect until the worker
// gets an observation that began later. While it is true, the router posts every observation to the
// worker, even if the pod has not changed.
func TestNeedsConfirmation(t *testing.T) {
	w, _ := bareWorker(barePod("a"))
	now := time.Now()
	observed := observedPod(true)
	w.observe(observed, now)
	if w.needsConfirmation.Load() {
		t.Error("needsConfirmation before any effect: got true, want false")
	}
	w.completeAction(result.Result{
		Action: plan.StartContainer{Container: "a", SandboxID: "s"}, Version: w.state.PlanInput.Desired, Ended: now.Add(2 * time.Second),
		Value: result.StartedContainer{Container: &runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running}},
	})
	for _, step := range []struct {
		asOf              time.Duration
		needsConfirmation bool
		containers        int
	}{{time.Second, true, 1}, {3 * time.Second, false, 0}} {
		w.observe(observed, now.Add(step.asOf))
		if got, n := w.needsConfirmation.Load(), len(w.state.PlanInput.Observed[0].Containers); got != step.needsConfirmation || n != step.containers {
			t.Errorf("observation that began %s after the start: got needsConfirmation %t and %d containers, want %t and %d", step.asOf, got, n, step.needsConfirmation, step.containers)
		}
	}
}

// TestProbe_SameResult checks that a probe attempt with an unchanged result causes no report and
// does not change the barrier. An attempt with another result causes a report.
func TestProbe_SameResult(t *testing.T) {
	p := barePod("a")
	p.Object.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 2}
	w, _ := bareWorker(p)
	w.journals = journal.Store{Root: t.TempDir()}
	w.state.PlanInput.Node = plan.Node{RuntimeReachable: true, RuntimeReady: true, NetworkReady: true}
	reports := 0
	w.send = func(u workerUpdate) {
		if u.report != nil {
			reports++
		}
	}
	now := time.Now()
	w.observe(observedPod(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running}), now)
	action := plan.RunProbe{Container: "a", ID: "a", Kind: plan.ReadinessProbe}
	attempt := func(passed bool) {
		f := result.Result{Action: action, Version: p, Began: time.Now(), Ended: time.Now()}
		f.Value = result.ProbeAttempt{Passed: passed, Message: time.Now().String()}
		w.actions[action.Subject()] = &runningAction{action: action, since: now, cancel: func() {}}
		w.decide(t.Context(), false)
		w.decide(t.Context(), w.handleResult(&actionResult{Result: f}))
	}
	w.actions[action.Subject()] = &runningAction{action: action, since: now, cancel: func() {}}
	w.decide(t.Context(), true)
	for i, step := range []struct {
		passed  bool
		reports int
	}{{true, 2}, {true, 2}, {false, 2}, {true, 2}, {false, 2}, {false, 3}, {false, 3}, {true, 4}, {true, 4}} {
		attempt(step.passed)
		if reports != step.reports {
			t.Errorf("reports after attempt %d: got %d, want %d", i, reports, step.reports)
		}
	}
	if !w.state.Barrier.IsZero() {
		t.Errorf("barrier after a probe: got %s, want it unchanged", w.state.Barrier)
	}
}

// TestAdd_NotWritten checks that ephemeral containers are not added if the journal cannot be
// written.
func TestAdd_NotWritten(t *testing.T) {
	p := barePod("a")
	p.Key.Name = "web"
	w, _ := bareWorker(p)
	w.key, w.journals, w.state.HasObserved = p.Key, journal.Store{Root: t.TempDir()}, true
	inTheWay := filepath.Join(w.journals.Root, "u", journal.FileName+".new", "x")
	if err := os.MkdirAll(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}
	if err := w.addEphemeral(ephemeralRequest{uid: "u", containers: []v1.EphemeralContainer{c}}); !apierrors.IsInternalError(err) {
		t.Fatalf("add after a failed write: got error %v, want an internal error", err)
	}
	if n := len(w.state.Records["u"].Ephemeral); n > 0 || w.state.PlanInput.Desired != p {
		t.Errorf("ephemeral containers: got %d in the records and %+v in the desired pod, want none", n, w.state.PlanInput.Desired.Object.Spec.EphemeralContainers)
	}
}
