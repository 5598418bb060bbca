package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/server"
)

// TestNodeProblems checks that a problem of the runtime is shown until it is resolved, in addition to
// the problems of the manifests.
func TestNodeProblems(t *testing.T) {
	v := NewPublisher(Options{Base: server.View{Node: "n1", Version: "v1"}})
	set := &manifest.Set{Problems: []manifest.Problem{{Severity: manifest.Warning, Path: "a.yaml", Message: "typo"}}}
	up := runtime.Node{Name: "containerd", Reachable: true, Ready: true, NetworkReady: true}
	down := runtime.Node{Name: "containerd", Message: "no response", NetworkReady: true}
	noCNI := up
	noCNI.NetworkReady, noCNI.NetworkMessage = false, "no CNI configuration"
	for _, step := range []struct {
		name   string
		change reconcile.Change
		want   string
	}{
		{"no data", reconcile.Change{}, ""},
		{"runtime ready", reconcile.Change{Node: up}, ""},
		{"manifests", reconcile.Change{Node: up, Set: set, SetChanged: true}, "typo"},
		{"runtime not responding", reconcile.Change{Node: down, Set: set}, "no response, typo"},
		{"no change", reconcile.Change{Node: down, Set: set}, "no response, typo"},
		{"no network", reconcile.Change{Node: noCNI, Set: set}, "no CNI configuration, typo"},
		{"problem resolved", reconcile.Change{Node: up, Set: set}, "typo"},
	} {
		v.Publish(step.change)
		var got []string
		for _, p := range v.Latest.View().Problems {
			got = append(got, p.Message)
		}
		if strings.Join(got, ", ") != step.want {
			t.Errorf("%s: got problems %q, want %q", step.name, got, step.want)
		}
	}
}

// TestStorageProblems checks that the View shows the problems of pods with a disk usage that cannot be
// measured, until the usage can be measured.
func TestStorageProblems(t *testing.T) {
	state := NewNodeState(NodeProblems{})
	v := NewPublisher(Options{Base: server.View{Node: "n1", Version: "v1"}, State: state})
	web := types.NamespacedName{Namespace: "default", Name: "web"}
	for _, all := range [][]manifest.Problem{{{Severity: manifest.Warning, Pod: web, Message: "not measured"}}, nil} {
		state.SetUnmeasuredPods(all)
		v.Publish(reconcile.Change{})
		if got := v.Latest.View().Problems; len(got) != len(all) || len(all) > 0 && got[0].Pod != server.Key(web) {
			t.Errorf("got problems %v, want %v", got, all)
		}
	}
}

// TestShowDesired checks that a new version of a pod is shown before the worker of the pod reports.
func TestShowDesired(t *testing.T) {
	var replaced []types.UID
	v := NewPublisher(Options{Base: server.View{Node: "n1"}, OnPodChanged: func(before, _ *server.PodView, _ time.Time) {
		if before != nil {
			replaced = append(replaced, before.Pod.UID)
		}
	}})
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	for _, uid := range []types.UID{"first", "second"} {
		pod := &manifest.Pod{Key: key, UID: uid, Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}}
		v.Publish(reconcile.Change{SetChanged: true, Set: &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{key: pod}}})
	}
	if want := []types.UID{"first"}; !slices.Equal(replaced, want) {
		t.Errorf("got replaced pods with UIDs %q, want %q", replaced, want)
	}
}

// TestPublish_Sorted checks that pods are sorted by namespace and name after any change. Publish must
// not modify the View that was published before.
func TestPublish_Sorted(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	report := func(name string) *state.Report { return &state.Report{Key: key(name)} }
	v := NewPublisher(Options{Base: server.View{Node: "n1"}})
	var before *server.View
	for _, step := range []struct {
		change reconcile.Change
		want   string
	}{
		{reconcile.Change{Reports: []*state.Report{report("c"), report("a"), report("d")}}, "a c d"},
		{reconcile.Change{Reports: []*state.Report{report("b"), report("c")}, Removed: []types.NamespacedName{key("a"), key("unknown")}}, "b c d"},
		{reconcile.Change{}, "b c d"},
		{reconcile.Change{Removed: []types.NamespacedName{key("c"), key("d")}, Reports: []*state.Report{report("e")}}, "b e"},
	} {
		was := shownNames(before)
		v.Publish(step.change)
		if got := shownNames(v.Latest.View()); got != step.want {
			t.Errorf("got pods %q, want %q", got, step.want)
		}
		if got := shownNames(before); got != was {
			t.Errorf("previous View: got pods %q, want %q", got, was)
		}
		before = v.Latest.View()
	}
}

// shownNames returns the names of the pods in a View, separated by spaces. v may be nil.
func shownNames(v *server.View) string {
	if v == nil {
		return ""
	}
	var all []string
	for _, p := range v.Pods {
		all = append(all, p.Pod.Name)
	}
	return strings.Join(all, " ")
}
