package reconcile

import (
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestClaimsAnsweredOnce: many reports that change claims have all pods admitted
// once, and not each of them.
func TestClaimsAnsweredOnce(t *testing.T) {
	r := NewRouter(Options{Log: slog.New(slog.DiscardHandler)})
	r.set = &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
	for _, name := range []string{"a", "b", "c"} {
		key := types.NamespacedName{Namespace: "default", Name: name}
		p := barePod("app")
		p.Key, p.UID = key, types.UID(name)
		r.set.Pods[key] = p
		r.entries[key] = &entry{worker: &worker{orders: make(chan order, 1)}}
	}
	for key, e := range r.entries {
		r.takeReport(Report{Key: key, worker: e.worker, Version: r.set.Pods[key], Exists: true})
	}
	orders := func() (n int) {
		for _, e := range r.entries {
			n += len(e.worker.orders)
		}
		return n
	}
	if n := orders(); n > 0 || !r.claimed {
		t.Errorf("%d orders for reports alone, claimed %v", n, r.claimed)
	}
	r.orderAll()
	if n := orders(); n != 3 || r.claimed {
		t.Errorf("%d orders, claimed %v, want 3 and false", n, r.claimed)
	}
}
