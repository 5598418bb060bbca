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
		state.SetUnlimitedPods(all)
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
		if shown := v.Latest.View().Pods[0]; !shown.IsInSource {
			t.Errorf("pod %s: got IsInSource false, want true", shown.Pod.UID)
		}
	}
	if want := []types.UID{"first"}; !slices.Equal(replaced, want) {
		t.Errorf("got replaced pods with UIDs %q, want %q", replaced, want)
	}
}

// TestPublish_RemovedPods checks that the View contains the last version of a removed pod while its
// source lists the pod as being deleted, even if no View contained this version before.
func TestPublish_RemovedPods(t *testing.T) {
	web := types.NamespacedName{Namespace: "default", Name: "web"}
	pod := func(uid types.UID) *manifest.Pod {
		object := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: uid}}
		return &manifest.Pod{Key: web, UID: uid, Object: object}
	}
	terminating := &manifest.Set{TerminatingPods: map[types.NamespacedName]*manifest.Pod{web: pod("1")}}
	otherUID := &manifest.Set{TerminatingPods: map[types.NamespacedName]*manifest.Pod{web: pod("2")}}
	last := pod("1").Object
	last.Status.Phase = v1.PodSucceeded
	removed := reconcile.Change{Set: terminating, Removed: []*state.Report{{Key: web, Pod: last}}}
	for name, c := range map[string]struct {
		changes []reconcile.Change
		want    *v1.Pod
	}{
		"removed":                          {[]reconcile.Change{removed}, last},
		"later change":                     {[]reconcile.Change{removed, {Set: terminating}}, last},
		"still listed in a later set":      {[]reconcile.Change{removed, {Set: terminating, SetChanged: true}}, last},
		"not listed any more":              {[]reconcile.Change{removed, {Set: &manifest.Set{}, SetChanged: true}}, nil},
		"new pod with the name":            {[]reconcile.Change{removed, {Set: otherUID, SetChanged: true}}, nil},
		"removed, of another UID":          {[]reconcile.Change{{Set: otherUID, Removed: removed.Removed}}, nil},
		"removed, from a file":             {[]reconcile.Change{{Set: &manifest.Set{}, Removed: removed.Removed}}, nil},
		"removed, manifest unknown":        {[]reconcile.Change{{Set: terminating, Removed: []*state.Report{{Key: web}}}}, nil},
		"removed before the first set":     {[]reconcile.Change{{Removed: removed.Removed}}, nil},
		"removed in the change of the set": {[]reconcile.Change{{Set: terminating, SetChanged: true, Removed: removed.Removed}}, last},
	} {
		v := NewPublisher(Options{Base: server.View{Node: "n1"}})
		for _, change := range c.changes {
			v.Publish(change)
		}
		if got := v.Latest.View().RemovedPods[web]; got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
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
		{reconcile.Change{Reports: []*state.Report{report("b"), report("c")}, Removed: []*state.Report{report("a"), report("unknown")}}, "b c d"},
		{reconcile.Change{}, "b c d"},
		{reconcile.Change{Removed: []*state.Report{report("c"), report("d")}, Reports: []*state.Report{report("e")}}, "b e"},
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
