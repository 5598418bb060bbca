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
	kubetable "podd/server/kube/table"
)

// TestPodView_EarlierVersion checks that the running containers of an earlier version are
// counted in OutdatedRunning or, while that version stops, in OutdatedStopping.
func TestPodView_EarlierVersion(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	desired := &manifest.Pod{Key: key, UID: "new", Hash: "v1:b", Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "more"}}},
		Status: v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}}
	inc := func(uid types.UID, hash string, foreign bool) runtime.Incarnation {
		return runtime.Incarnation{
			Sandbox:    runtime.Sandbox{ID: "s", UID: uid, Ready: true, Foreign: foreign, Annotations: map[string]string{runtime.AnnotationPodHash: hash}},
			Containers: []runtime.Container{{Name: "app", State: runtime.Running}, {Name: "init", State: runtime.Exited}},
		}
	}
	for name, test := range map[string]struct {
		phase           plan.Phase
		observed        runtime.Incarnation
		earlier, ending int
	}{
		"earlier version running":  {plan.PhaseWait, inc("old", "v1:a", false), 1, 0},
		"earlier version stopping": {plan.PhaseStop, inc("old", "v1:a", false), 0, 1},
		"current version stopping": {plan.PhaseStop, inc("new", "v1:b", false), 0, 0},
		"foreign sandbox":          {plan.PhaseWait, inc("old", "v1:a", true), 0, 0},
		"current version running":  {plan.PhaseWait, inc("new", "v1:b", false), 0, 0},
	} {
		r := &state.Report{Key: key, Version: desired, Pod: desired.Object, Observed: []runtime.Incarnation{test.observed}, Decision: plan.Decision{Phase: test.phase}}
		if p := podView(r, desired); p.Pod != desired.Object || p.OutdatedRunningContainers != test.earlier || p.OutdatedStoppingContainers != test.ending {
			t.Errorf("%s: got %d earlier and %d ending, want %d and %d", name, p.OutdatedRunningContainers, p.OutdatedStoppingContainers, test.earlier, test.ending)
		}
	}
}

// TestPodView_Unknown checks that a pod without a manifest is Terminating only if all
// sources have been read.
func TestPodView_Unknown(t *testing.T) {
	for phase, want := range map[plan.Phase]string{plan.PhaseHold: "Unknown", plan.PhaseStop: "Terminating"} {
		p := podView(&state.Report{Key: types.NamespacedName{Namespace: "default", Name: "web"}, Decision: plan.Decision{Phase: phase}}, nil)
		if got := kubetable.NewPodCells(p.Pod, poddtest.At).Status; got != want {
			t.Errorf("%s: got %s, want %s", phase, got, want)
		}
	}
}

// TestPodView_Attempts checks that a view contains the attempt numbers that differ from the
// restart counts. They differ if the runtime has rejected an attempt.
func TestPodView_Attempts(t *testing.T) {
	observed := []runtime.Incarnation{{Containers: []runtime.Container{
		{ID: "a", Attempt: 3, Annotations: map[string]string{runtime.AnnotationRestartCount: "2"}},
		{ID: "b", Attempt: 2, Annotations: map[string]string{runtime.AnnotationRestartCount: "2"}},
	}}}
	p := podView(&state.Report{Observed: observed}, nil)
	if want := (map[string]uint32{"a": 3}); !maps.Equal(p.Attempts, want) {
		t.Errorf("got %v, want %v", p.Attempts, want)
	}
}
