package view

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/server"
	kubetable "podd/server/kube/table"
)

// TestPodView_EarlierVersion checks that the running containers of an earlier version are counted in
// OutdatedRunningContainers or, while podd stops them, in OutdatedStoppingContainers.
func TestPodView_EarlierVersion(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	desired := &manifest.Pod{Key: key, UID: "new", Hash: "v1:b", Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "more"}}},
		Status: v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}}
	newIncarnation := func(uid types.UID, hash string, foreign bool) runtime.Incarnation {
		return runtime.Incarnation{
			Sandbox:    runtime.Sandbox{ID: "s", UID: uid, Ready: true, Foreign: foreign, Annotations: map[string]string{runtime.AnnotationPodHash: hash}},
			Containers: []runtime.Container{{Name: "app", State: runtime.Running}, {Name: "init", State: runtime.Exited}},
		}
	}
	for name, test := range map[string]struct {
		phase             plan.Phase
		observed          runtime.Incarnation
		running, stopping int // expected numbers of outdated containers
	}{
		"earlier version running":  {plan.PhaseWait, newIncarnation("old", "v1:a", false), 1, 0},
		"earlier version stopping": {plan.PhaseStop, newIncarnation("old", "v1:a", false), 0, 1},
		"current version stopping": {plan.PhaseStop, newIncarnation("new", "v1:b", false), 0, 0},
		"foreign sandbox":          {plan.PhaseWait, newIncarnation("old", "v1:a", true), 0, 0},
		"current version running":  {plan.PhaseWait, newIncarnation("new", "v1:b", false), 0, 0},
	} {
		r := &state.Report{Key: key, Version: desired, Pod: desired.Object, Observed: []runtime.Incarnation{test.observed}, Decision: plan.Decision{Phase: test.phase}}
		if p := podView(r, desired); p.Pod != desired.Object || p.OutdatedRunningContainers != test.running || p.OutdatedStoppingContainers != test.stopping {
			t.Errorf("%s: got %d running and %d stopping outdated containers, want %d and %d", name, p.OutdatedRunningContainers, p.OutdatedStoppingContainers, test.running, test.stopping)
		}
	}
}

// TestPodView_EvictionSignal checks that a view names the reason of an eviction, and that a pod that the
// node has rejected has none.
func TestPodView_EvictionSignal(t *testing.T) {
	for want, end := range map[string]plan.PodEnd{
		"memory.available": {Reason: plan.ReasonEvicted, Shortage: plan.Shortage{Signal: "memory.available"}},
		"emptydirfs.limit": {Reason: plan.ReasonEvicted, StorageLimit: "emptydirfs.limit"},
		"":                 {Reason: plan.ReasonEvicted, Message: plan.RejectedPrefix + "The node had condition: [MemoryPressure]. ", IsRejected: true},
	} {
		if p := podView(&state.Report{Finished: &end}, nil); p.EvictionSignal != want || p.IsRejected != end.IsRejected {
			t.Errorf("PodEnd %+v: got signal %q and rejected %t, want %q and %t", end, p.EvictionSignal, p.IsRejected, want, end.IsRejected)
		}
		e := plan.Eviction{Shortage: end.Shortage, StorageLimit: end.StorageLimit}
		if p := podView(&state.Report{TerminatingEviction: &e}, nil); p.EvictionSignal != want {
			t.Errorf("eviction %+v of a pod that is being deleted: got signal %q, want %q", e, p.EvictionSignal, want)
		}
	}
}

// TestPodView_Unknown checks the status of a pod without a manifest. It is Unknown while podd waits for
// sources that have not been read (PhaseHold), and Terminating while podd stops the pod.
func TestPodView_Unknown(t *testing.T) {
	for phase, want := range map[plan.Phase]string{plan.PhaseHold: "Unknown", plan.PhaseStop: "Terminating"} {
		p := podView(&state.Report{Key: types.NamespacedName{Namespace: "default", Name: "web"}, Decision: plan.Decision{Phase: phase}}, nil)
		if got := kubetable.NewPodCells(p.Pod, poddtest.At).Status; got != want {
			t.Errorf("phase %s: got status %s, want %s", phase, got, want)
		}
	}
}

// TestPodView_RuntimeContainers checks that a view counts all containers in the runtime, also those that
// have been restarted, but none of another agent.
func TestPodView_RuntimeContainers(t *testing.T) {
	containers := func(states ...runtime.ContainerState) (list []runtime.Container) {
		for _, s := range states {
			list = append(list, runtime.Container{Name: "main", State: s})
		}
		return list
	}
	p := podView(&state.Report{Observed: []runtime.Incarnation{
		{Containers: containers(runtime.Running, runtime.Exited, runtime.Created)},
		{Containers: containers(runtime.Exited, runtime.ExitCodeUnknown, runtime.Unknown)},
		{Sandbox: runtime.Sandbox{Foreign: true}, Containers: containers(runtime.Running)},
	}}, nil)
	if want := (server.ContainerCounts{Created: 1, Running: 1, Exited: 3, Unknown: 1}); p.RuntimeContainers != want {
		t.Errorf("got %+v, want %+v", p.RuntimeContainers, want)
	}
}

// TestPodView_Attempts checks that a view contains only the attempt numbers that differ from the restart
// count of the container. They differ if the runtime has rejected an attempt.
func TestPodView_Attempts(t *testing.T) {
	observed := []runtime.Incarnation{{Containers: []runtime.Container{
		{ID: "a", Attempt: 3, Annotations: map[string]string{runtime.AnnotationRestartCount: "2"}},
		{ID: "b", Attempt: 2, Annotations: map[string]string{runtime.AnnotationRestartCount: "2"}},
	}}}
	p := podView(&state.Report{Observed: observed}, nil)
	if want := (map[string]uint32{"a": 3}); !maps.Equal(p.Attempts, want) {
		t.Errorf("got attempt numbers %v, want %v", p.Attempts, want)
	}
}
