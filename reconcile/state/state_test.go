package state

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// memory is a State for tests, with the outputs of its changes.
type memory struct {
	*State
	urgent []bool // for each requested observation, whether it was urgent
	writes []Write
}

// newMemory returns the memory of a pod with the desired version p. The runtime was not observed yet.
func newMemory(p *manifest.Pod) *memory {
	m := &memory{State: New(InitialFacts{Key: p.Key})}
	m.change(func(t *transition) { t.setDesired(p) })
	return m
}

// set replaces the state and records the outputs of its change.
func (m *memory) set(s *State, out Outputs) {
	m.State, m.writes = s, append(m.writes, out.Writes...)
	if out.RequestedObservation != ObserveNotRequested {
		m.urgent = append(m.urgent, out.RequestedObservation == ObserveAtOnce)
	}
}

// change changes the state with f.
func (m *memory) change(f func(*transition)) {
	t := m.begin(time.Now())
	f(t)
	m.set(t.end())
}

// observe applies an observation of p that was requested at asOf.
func (m *memory) observe(p *runtime.Pod, asOf time.Time) {
	m.change(func(t *transition) { t.applyObservation(p, asOf) })
}

func (m *memory) prepareDecision(now time.Time) {
	m.set(m.PrepareDecision(m.PlanInput.InFlight, nil, now))
}

// applyResult applies the result of an action.
func (m *memory) applyResult(f result.Result) { m.set(m.ApplyResult(f, f.Ended)) }

// podOf returns a pod with these containers.
func podOf(containers ...string) *manifest.Pod {
	p := &manifest.Pod{UID: "u", Hash: "v1:h", Object: &v1.Pod{}}
	for _, name := range containers {
		p.Object.Spec.Containers = append(p.Object.Spec.Containers, v1.Container{Name: name, Image: "i:1"})
	}
	return p
}

// observedPod returns an observation of one sandbox of podOf's pod.
func observedPod(ready bool, containers ...runtime.Container) *runtime.Pod {
	return &runtime.Pod{Incarnations: []runtime.Incarnation{{
		Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: ready, Annotations: map[string]string{runtime.AnnotationPodHash: "v1:h"}},
		Containers: containers,
	}}}
}

// TestBarrierOrder checks that the barrier is the newest end of an effect, even if results
// arrive in another order.
func TestBarrierOrder(t *testing.T) {
	p := podOf("a", "b")
	m := newMemory(p)
	now := time.Now()
	m.observe(observedPod(true), now)
	started := func(name string, after time.Duration) result.Result {
		return result.Result{
			Action: plan.StartContainer{Container: name, SandboxID: "s"}, Version: p, Ended: now.Add(after),
			Value: result.StartedContainer{Container: &runtime.Container{ID: name, SandboxID: "s", Name: name, State: runtime.Running}},
		}
	}
	m.applyResult(started("b", 2*time.Second))
	m.applyResult(started("a", time.Second))
	m.urgent = nil
	m.observe(observedPod(true, runtime.Container{ID: "a", Name: "a", State: runtime.Running}), now.Add(1500*time.Millisecond))
	if n := len(m.PlanInput.Observed[0].Containers); n != 2 || len(m.urgent) != 1 {
		t.Errorf("after an observation that began before b was started: got %d containers and %d requests, want 2 and 1", n, len(m.urgent))
	}
}

// TestObserve_Urgent checks when an observation that is older than the newest effect causes an
// urgent request for another observation: if it shows that a container or sandbox has stopped, or
// if a decision waits for an observation.
func TestObserve_Urgent(t *testing.T) {
	running := runtime.Container{ID: "a", Name: "a", State: runtime.Running}
	exited := runtime.Container{ID: "a", Name: "a", State: runtime.Exited}
	for name, test := range map[string]struct {
		old        *runtime.Pod
		unobserved bool
		want       bool
	}{
		"no container has stopped":         {old: observedPod(true, running)},
		"before the container was created": {old: observedPod(true)},
		"before the sandbox was created":   {old: nil},
		"the container has exited":         {old: observedPod(true, exited), want: true},
		"the sandbox has stopped":          {old: observedPod(false, running), want: true},
		"a container may be unobserved":    {old: observedPod(true, running), unobserved: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(podOf("a", "b"))
			now := time.Now()
			m.observe(observedPod(true, running), now)
			m.PlanInput.MayHaveUnobserved, m.Barrier = test.unobserved, now.Add(time.Second)
			m.observe(test.old, now)
			if len(m.urgent) != 1 || m.urgent[0] != test.want {
				t.Errorf("got requests with urgency %v, want one with %t", m.urgent, test.want)
			}
		})
	}
}

// TestBarrier_NotObservable checks that the barrier does not drop an observation because of
// an action that changes nothing in the runtime.
func TestBarrier_NotObservable(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	now := time.Now()
	for _, a := range []plan.Action{plan.EnsureImage{Container: "a"}, plan.PrepareVolumes{UID: p.UID}} {
		m.applyResult(result.Result{Action: a, Version: p, Ended: now.Add(time.Second)})
	}
	m.observe(observedPod(true), now)
	if len(m.PlanInput.Observed) != 1 || len(m.urgent) != 0 {
		t.Errorf("got observed %+v and %d requests, want the sandbox and no request", m.PlanInput.Observed, len(m.urgent))
	}
}

// TestApplySandbox_ListedBefore checks that a sandbox keeps the containers that were started in it
// before the result of its creation is applied.
func TestApplySandbox_ListedBefore(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	now := time.Now()
	pod := observedPod(true, runtime.Container{ID: "a", SandboxID: "s", Name: "a", State: runtime.Running})
	m.observe(pod, now)
	m.applyResult(result.Result{Action: plan.RunSandbox{}, Version: p, Ended: now.Add(1), Value: result.CreatedSandbox{Sandbox: &pod.Incarnations[0].Sandbox}})
	if n := len(m.PlanInput.Observed); n != 1 || len(m.PlanInput.Observed[0].Containers) != 1 {
		t.Errorf("got observed %+v, want the sandbox once with its container", m.PlanInput.Observed)
	}
}

// TestSandboxAttempt_UsedOnce checks that a sandbox does not get the attempt number of a removed
// sandbox with the same pod UID, even after an edit.
func TestSandboxAttempt_UsedOnce(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	now := time.Now()
	m.observe(observedPod(false), now)
	m.applyResult(result.Result{Action: plan.RemoveSandbox{ID: "s"}, Version: p, Ended: now.Add(1)})
	if got := m.PlanInput.History.SandboxAttempt; got != 1 {
		t.Errorf("after the removal of attempt 0: got next attempt %d, want 1", got)
	}
	edited := podOf("a")
	edited.Hash = "v1:other"
	m.change(func(t *transition) { t.setVersion(edited) })
	if got := m.PlanInput.History.SandboxAttempt; got != 1 {
		t.Errorf("after an edit: got next attempt %d, want 1", got)
	}
	other := podOf("a")
	other.UID = "other"
	m.change(func(t *transition) { t.setVersion(other) })
	if got := m.PlanInput.History.SandboxAttempt; got != 0 {
		t.Errorf("another UID: got first attempt %d, want 0", got)
	}
}

// TestForgetRemoved checks that the history forgets the sandboxes and containers that no longer
// exist, and the failures of their removals.
func TestForgetRemoved(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	now := time.Now()
	m.observe(observedPod(true, runtime.Container{ID: "a", Name: "a", State: runtime.Exited}), now)
	m.prepareDecision(now)
	shared := m.PlanInput
	m.applyResult(result.Result{Action: plan.StopSandbox{ID: "s"}, Version: p, Ended: now.Add(1)})
	m.applyResult(result.Result{Action: plan.RemoveSandbox{ID: "s"}, Version: p, Ended: now.Add(2), Err: context.DeadlineExceeded})
	m.observe(nil, now.Add(3))
	m.PlanInput.PodDirs = nil
	m.prepareDecision(now.Add(3))
	if h := m.PlanInput.History; len(h.ExitSeenAt)+len(h.ReleasedSandboxes)+len(h.CleanupFailures) > 0 {
		t.Errorf("got SeenExit %v, Released %v and Cleanup %v, want none", h.ExitSeenAt, h.ReleasedSandboxes, h.CleanupFailures)
	}
	if len(shared.History.ExitSeenAt) != 1 {
		t.Error("a map of an earlier state was modified")
	}
}

// TestExits_OtherVersion checks two versions of a pod with the same UID. The exits of the containers
// of the first version do not count for the second version.
func TestExits_OtherVersion(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	pod := observedPod(false, runtime.Container{ID: "a", Name: "a", State: runtime.Exited})
	pod.Incarnations[0].Annotations = map[string]string{runtime.AnnotationPodHash: "v1:other"}
	m.observe(pod, time.Now())
	m.prepareDecision(time.Now())
	if e := m.PlanInput.History.Containers["a"].LastExit; e != nil {
		t.Errorf("got last exit %+v, want none", e)
	}
}

// TestRequestRestart_OtherSandbox checks that a container of another sandbox with the same name
// is not restarted.
func TestRequestRestart_OtherSandbox(t *testing.T) {
	m := newMemory(podOf("a"))
	pod := observedPod(true, runtime.Container{ID: "mine", Name: "a", State: runtime.Running})
	theirs := observedPod(true, runtime.Container{ID: "theirs", Name: "a", State: runtime.Running}).Incarnations[0]
	theirs.ID, theirs.Foreign = "f", true
	pod.Incarnations = append(pod.Incarnations, theirs)
	m.observe(pod, time.Now())
	m.change(func(t *transition) { t.requestRestart("a") })
	if got := m.PlanInput.History.Containers["a"].RestartRequestedID; got != "mine" {
		t.Errorf("requested restart: got container ID %q, want \"mine\"", got)
	}
}

// TestEqualVersion checks that the result of an action is applied if, in the meantime, the same
// version of the pod was read again from its source.
func TestEqualVersion(t *testing.T) {
	p := podOf("a")
	m := newMemory(p)
	again := *p
	m.change(func(t *transition) { t.setDesired(&again) })
	m.applyResult(result.Result{Action: plan.EnsureImage{Container: "a", Image: "i:1"}, Version: p, Ended: time.Now(), Value: result.EnsuredImage{Image: result.Image{Ref: "sha256:1"}}})
	m.applyResult(result.Result{Action: plan.PrepareVolumes{UID: "u"}, Version: p, Ended: time.Now()})
	if h := m.PlanInput.History; h.Containers["a"].Image.Ref != "sha256:1" || !h.VolumesReady {
		t.Errorf("got image %+v and VolumesReady %t, want an image with Ref sha256:1 and true", h.Containers["a"].Image, h.VolumesReady)
	}
}

// TestWithExits checks that a container that has exited is not stopped again if a later observation
// reports it as running, because its status could not be queried.
func TestWithExits(t *testing.T) {
	p := podOf("a", "b")
	m := newMemory(p)
	now := time.Now()
	a := runtime.Container{ID: "1", SandboxID: "s", Name: "a", State: runtime.Running}
	b := runtime.Container{ID: "2", SandboxID: "s", Name: "b", State: runtime.Running}
	before := observedPod(true, a, b)
	m.observe(before, now)
	end := a
	end.State, end.ExitCode = runtime.Exited, 3
	m.applyResult(result.Result{Action: plan.StopContainer{Container: "a", ID: "1"}, Version: p, Ended: now.Add(1), Value: result.StoppedContainer{Container: &end}})
	m.observe(before, now.Add(2))
	got := m.PlanInput.Observed[0].Containers
	if len(got) != 2 || got[0].State != runtime.Exited || got[0].ExitCode != 3 || got[1].State != runtime.Running {
		t.Errorf("got containers %+v, want container a with exit code 3 and container b running", got)
	}
	if before.Incarnations[0].Containers[0].State != runtime.Running {
		t.Error("the observation was modified")
	}

	// An exit that the runtime reports is used.
	end.ExitCode = 137
	m.observe(observedPod(true, end, b), now.Add(3))
	if got := m.PlanInput.Observed[0].Containers[0].ExitCode; got != 137 {
		t.Errorf("got exit code %d, want the observed code 137", got)
	}
}

// TestApplyOrder_RecordsStart checks that the start time of an admitted pod with a deadline is
// written once. Later orders and a restart of podd do not change it.
func TestApplyOrder_RecordsStart(t *testing.T) {
	deadline := func(seconds *int64) *manifest.Pod {
		p := podOf("a")
		p.Object.Spec.ActiveDeadlineSeconds = seconds
		return p
	}
	limited, now := deadline(new(int64(60))), time.Now()
	order := func(m *memory, p *manifest.Pod, answer plan.Answer, q Requests, at time.Time) []Write {
		m.writes = nil
		m.set(m.ApplyOrder(Order{Desired: p, Verdict: plan.Verdict{Answer: answer}}, q, false, at))
		return m.writes
	}
	observed := Requests{Observation: &Observation{AsOf: now}}
	for _, test := range []struct {
		name   string
		pod    *manifest.Pod
		answer plan.Answer
		q      Requests
		want   int
	}{
		{"admitted", limited, plan.Admit, observed, 1},
		{"no deadline", deadline(nil), plan.Admit, observed, 0},
		{"not admitted", limited, plan.Wait, observed, 0},
		{"not observed", limited, plan.Admit, Requests{}, 0},
	} {
		m := &memory{State: New(InitialFacts{Key: test.pod.Key})}
		if got := order(m, test.pod, test.answer, test.q, now); len(got) != test.want {
			t.Errorf("%s: got %d writes, want %d", test.name, len(got), test.want)
		}
	}

	earlier := &memory{State: New(InitialFacts{Key: limited.Key, PastRecords: []Record{{UID: limited.UID, Hash: "v1:earlier", HasVolumes: true}}})}
	if got := order(earlier, limited, plan.Admit, observed, now); len(got) > 0 || earlier.dir(limited.UID).Hash != "v1:earlier" {
		t.Errorf("directory of an earlier version: got %d writes and hash %q, want none and v1:earlier", len(got), earlier.dir(limited.UID).Hash)
	}

	m := &memory{State: New(InitialFacts{Key: limited.Key})}
	written := order(m, limited, plan.Admit, observed, now)
	if len(written) != 1 || !written[0].Record.MonotonicStartTime.Equal(now) {
		t.Fatalf("got writes %+v, want one with the start time", written)
	}
	if got := order(m, limited, plan.Admit, Requests{}, now.Add(time.Second)); len(got) > 0 {
		t.Errorf("next order: got %d writes, want none", len(got))
	}
	later := &memory{State: New(InitialFacts{Key: limited.Key, PastRecords: []Record{written[0].Record}})}
	if got := order(later, limited, plan.Admit, observed, now.Add(time.Minute)); len(got) > 0 || !later.PlanInput.History.StartTime.Equal(now) {
		t.Errorf("after a restart of podd: got %d writes and start time %v, want none and %v", len(got), later.PlanInput.History.StartTime, now)
	}
	if got := order(m, limited, plan.Wait, Requests{}, now.Add(2*time.Second)); len(got) > 0 {
		t.Errorf("not admitted any more: got %d writes, want none", len(got))
	}
	again := now.Add(3 * time.Second)
	if got := order(m, limited, plan.Admit, Requests{}, again); len(got) != 1 || !got[0].Record.MonotonicStartTime.Equal(again) {
		t.Errorf("admitted again: got writes %+v, want one with the new start time", got)
	}
}

// TestApplyOrder_WaitsAfterRestart checks that a pod that an earlier podd has started keeps
// its recorded start time if the node admits it only after a wait.
func TestApplyOrder_WaitsAfterRestart(t *testing.T) {
	p, now := podOf("a"), time.Now()
	started := now.Add(-time.Minute)
	record := Record{UID: p.UID, Hash: p.Hash, StartTime: started.Round(0), MonotonicStartTime: started, HasVolumes: true}
	for _, test := range []struct {
		name string
		past []Record
		want time.Time
	}{
		{"started by an earlier podd", []Record{record}, started},
		{"not started before", nil, now.Add(time.Second)},
	} {
		m := &memory{State: New(InitialFacts{Key: p.Key, PastRecords: test.past})}
		waits := Order{Desired: p, Verdict: plan.Verdict{Answer: plan.Wait}}
		m.set(m.ApplyOrder(waits, Requests{Observation: &Observation{AsOf: now}}, true, now))
		m.set(m.ApplyOrder(Order{Desired: p}, Requests{}, true, now.Add(time.Second)))
		if got := m.PlanInput.History.StartTime; !got.Equal(test.want) {
			t.Errorf("%s: got start time %v, want %v", test.name, got, test.want)
		}
		if got := m.StartTime; !got.Equal(test.want) {
			t.Errorf("%s: got start time %v in the status, want %v", test.name, got, test.want)
		}
	}
}

// TestWrite_WaitsForAdmission checks that the start time of a pod is the time of its admission.
// This must hold even if the pod waited for the admission, its journal was written meanwhile, and
// podd was restarted.
func TestWrite_WaitsForAdmission(t *testing.T) {
	p, now := podOf("a"), time.Now()
	waits := Order{Desired: p, Verdict: plan.Verdict{Answer: plan.Wait}}
	observed := Requests{Observation: &Observation{AsOf: now}}
	m := &memory{State: New(InitialFacts{Key: p.Key})}
	m.set(m.ApplyOrder(waits, observed, false, now))
	debug := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}
	_, out, err := m.AddEphemeral(p.UID, []v1.EphemeralContainer{debug}, false, now)
	if err != nil || len(out.Writes) != 1 {
		t.Fatalf("adding an ephemeral container: got error %v and %d writes, want no error and one write", err, len(out.Writes))
	}

	later := &memory{State: New(InitialFacts{Key: p.Key, PastRecords: []Record{out.Writes[0].Record}})}
	later.set(later.ApplyOrder(waits, observed, true, now.Add(time.Minute)))
	admitted := now.Add(time.Hour)
	later.set(later.ApplyOrder(Order{Desired: p}, Requests{}, true, admitted))
	if got := later.PlanInput.History.StartTime; !got.Equal(admitted) {
		t.Errorf("got start time %v, want the admission at %v", got, admitted)
	}
	if got := later.StartTime; !got.Equal(admitted) {
		t.Errorf("got start time %v in the status, want %v", got, admitted)
	}
}

// TestRetryResize checks that a new size of a container or of the whole pod removes the failures of
// resizes to an earlier size. An unchanged size does not remove them.
func TestRetryResize(t *testing.T) {
	sized := func(container, pod string) *manifest.Pod {
		p := podOf("a")
		p.ContainerHashes = map[string]manifest.ContainerHash{"a": {StartHash: "s", Resources: container}}
		p.Object.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(pod)}}
		return p
	}
	failure := plan.Failure{Count: 1, Message: "device or resource busy", RetryAt: time.Now().Add(time.Minute)}
	for name, tt := range map[string]struct {
		next      *manifest.Pod
		isNewSize bool
		want      plan.Failure
	}{
		"same size":             {sized("memory=1Mi/2Mi", "1Gi"), false, failure},
		"size of the container": {sized("memory=1Mi/4Mi", "1Gi"), true, plan.Failure{}},
		"size of the pod":       {sized("memory=1Mi/2Mi", "2Gi"), true, plan.Failure{}},
	} {
		first := sized("memory=1Mi/2Mi", "1Gi")
		m := newMemory(first)
		m.change(func(t *transition) {
			t.PlanInput.History.ResizePodFailure = failure
			t.changeContainer("a", func(h *plan.ContainerHistory) { h.ResizeFailure = failure })
			t.setDesired(tt.next)
		})
		h := m.PlanInput.History
		if h.ResizePodFailure != tt.want || h.Containers["a"].ResizeFailure != tt.want {
			t.Errorf("%s: got failure %+v of the pod's resize and %+v of the container's resize, want %+v for each", name, h.ResizePodFailure, h.Containers["a"].ResizeFailure, tt.want)
		}
		if got := !EqualSize(first, tt.next); got != tt.isNewSize {
			t.Errorf("%s: !EqualSize: got %t, want %t", name, got, tt.isNewSize)
		}
		if got := !first.HasSizesOf(tt.next); got != tt.isNewSize {
			t.Errorf("%s: !HasSizesOf: got %t, want %t", name, got, tt.isNewSize)
		}
	}
}
