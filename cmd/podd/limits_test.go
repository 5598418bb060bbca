package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
)

// TestReported: the pods that a limit keeper looks at are those that are there.
func TestReported(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	one := func(name string) *reconcile.Report {
		return &reconcile.Report{Key: key(name), Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	r := &reported{pods: map[types.NamespacedName]*v1.Pod{}}
	r.take(reconcile.Change{Reports: []*reconcile.Report{one("a"), one("b"), {Key: key("unknown")}}})
	r.take(reconcile.Change{Gone: []types.NamespacedName{key("a")}})
	if all := r.all(); len(all) != 1 || all[0].Name != "b" {
		t.Errorf("%v", all)
	}
}
