package eviction

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/state"
)

// TestReportCache checks that the cache contains exactly the pods that exist, and that it is starting
// until the router has published that all pods are known.
func TestReportCache(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	one := func(name string) *state.Report {
		return &state.Report{Key: key(name), Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	r := NewReportCache()
	if !r.IsStarting() {
		t.Error("before the first change: got IsStarting false, want true")
	}
	r.Apply(reconcile.Change{Starting: true, Reports: []*state.Report{one("a"), one("b"), {Key: key("unknown")}}})
	if !r.IsStarting() {
		t.Error("after a change while podd starts: got IsStarting false, want true")
	}
	r.Apply(reconcile.Change{Removed: []*state.Report{{Key: key("a")}}})
	if r.IsStarting() {
		t.Error("after the start: got IsStarting true, want false")
	}
	if all := r.All(); len(all) != 1 || all[0].Key.Name != "b" {
		t.Errorf("got %v, want only pod b", all)
	}
}
