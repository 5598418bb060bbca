package eviction

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/state"
)

// TestReportCache checks that the cache contains exactly the pods that exist.
func TestReportCache(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	one := func(name string) *state.Report {
		return &state.Report{Key: key(name), Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	r := NewReportCache()
	r.Apply(reconcile.Change{Reports: []*state.Report{one("a"), one("b"), {Key: key("unknown")}}})
	r.Apply(reconcile.Change{Removed: []*state.Report{{Key: key("a")}}})
	if all := r.All(); len(all) != 1 || all[0].Key.Name != "b" {
		t.Errorf("got %v, want only pod b", all)
	}
}
