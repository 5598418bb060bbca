package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/runtime"
	"podd/server"
	kubetable "podd/server/kube/table"
)

// TestPsEarlier: what runs of an earlier version is not shown as the one that cannot
// start, and as what it is while it ends for that.
func TestPsEarlier(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	wanted := &manifest.Pod{Key: key, UID: "new", Hash: "v1:b", Spec: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "more"}}},
		Status: v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}}
	inc := func(uid types.UID, hash string, foreign bool) runtime.Incarnation {
		return runtime.Incarnation{
			Sandbox:    runtime.Sandbox{ID: "s", UID: uid, Ready: true, Foreign: foreign, Annotations: map[string]string{runtime.AnnotationHash: hash}},
			Containers: []runtime.Container{{Name: "app", State: runtime.Running}, {Name: "init", State: runtime.Exited}},
		}
	}
	for name, test := range map[string]struct {
		phase                 plan.Phase
		seen                  runtime.Incarnation
		ready, status, source string
	}{
		"an earlier one":     {plan.PhaseWait, inc("old", "v1:a", false), "1/2", "Running", "web.yaml (edit waits)"},
		"it is being ended":  {plan.PhaseStop, inc("old", "v1:a", false), "1/2", "Terminating", "web.yaml"},
		"its own are ended":  {plan.PhaseStop, inc("new", "v1:b", false), "0/2", "ContainerCreating", "web.yaml"},
		"somebody else's":    {plan.PhaseWait, inc("old", "v1:a", true), "0/2", "ContainerCreating", "web.yaml"},
		"its own containers": {plan.PhaseWait, inc("new", "v1:b", false), "0/2", "ContainerCreating", "web.yaml"},
	} {
		r := &reconcile.Report{Key: key, Version: wanted, Pod: wanted.Spec, Observed: []runtime.Incarnation{test.seen}, Decision: plan.Decision{Phase: test.phase}}
		p := podView(r, wanted)
		p.Path = "/etc/podd/manifests/web.yaml"
		c := columns(p, at)
		from := (&listing{PsCmd: &PsCmd{}}).from(&server.View{}, p, at)
		if c.Ready != test.ready || c.Status != test.status || from != test.source {
			t.Errorf("%s: %s %s %s", name, c.Ready, c.Status, from)
		}
	}
}

// TestPsUnknown: a pod is being ended only once it is known that nothing wants
// it.
func TestPsUnknown(t *testing.T) {
	for phase, want := range map[plan.Phase]string{plan.PhaseHold: "Unknown", plan.PhaseStop: "Terminating"} {
		p := podView(&reconcile.Report{Key: types.NamespacedName{Namespace: "default", Name: "web"}, Decision: plan.Decision{Phase: phase}}, nil)
		if got := kubetable.WordsOf(p.Pod, at).Status; got != want {
			t.Errorf("%s: %s, want %s", phase, got, want)
		}
	}
}
