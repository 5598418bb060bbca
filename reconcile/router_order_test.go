package reconcile

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestReservations_OneAdmission checks that podd runs one admission of all pods after many reports of
// changed reservations, not one admission for each report.
func TestReservations_OneAdmission(t *testing.T) {
	r := NewRouter(Options{Log: slog.New(slog.DiscardHandler)})
	pods := map[types.NamespacedName]*manifest.Pod{}
	r.desired = &desiredSet{ResolvedSet: &refs.ResolvedSet{Set: &manifest.Set{Pods: pods}}}
	for _, name := range []string{"a", "b", "c"} {
		key := types.NamespacedName{Namespace: "default", Name: name}
		p := barePod("app")
		p.Key, p.UID = key, types.UID(name)
		pods[key] = p
		r.entries[key] = &workerEntry{worker: &worker{messages: make(chan *workerMessage, 1)}}
	}
	for key, e := range r.entries {
		r.applyUpdate(workerUpdate{key: key, worker: e.worker, report: &state.Report{Key: key, Version: pods[key], ExistsOnNode: true}})
	}
	orders := func() (n int) {
		for _, e := range r.entries {
			n += len(e.worker.messages)
		}
		return n
	}
	if n := orders(); n > 0 || !r.reservationsChanged {
		t.Errorf("after the reports, before the admission: got %d Orders and reservationsChanged %v, want no Orders and reservationsChanged true", n, r.reservationsChanged)
	}
	r.postOrders()
	if n := orders(); n != 3 || r.reservationsChanged {
		t.Errorf("after the admission: got %d Orders and reservationsChanged %v, want 3 Orders and reservationsChanged false", n, r.reservationsChanged)
	}
}

// TestOrderPause checks that the admission after changed reservations waits until the pause since the
// last admission is over. In a shutdown it does not wait.
func TestOrderPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(Options{Log: slog.New(slog.DiscardHandler)})
		if r.ordersDueChannel() != nil {
			t.Error("without changed reservations: got a channel, want nil")
		}
		r.reservationsChanged, r.nextOrdersAt = true, time.Now().Add(time.Second)
		if r.postOrdersIfDue(); !r.reservationsChanged {
			t.Error("during the pause: got an admission, want none")
		}
		<-r.ordersDueChannel()
		if r.postOrdersIfDue(); r.reservationsChanged {
			t.Error("after the pause: got no admission, want one")
		}
		r.reservationsChanged, r.nextOrdersAt = true, time.Now().Add(time.Second)
		r.shutdown = newShutdown(nil)
		if r.postOrdersIfDue(); r.reservationsChanged {
			t.Error("in a shutdown: got no admission, want one")
		}
	})
}

// TestApplySnapshot_Unchanged checks that a relist posts only pods that changed, and pods whose
// worker waits for the confirmation of an effect.
func TestApplySnapshot_Unchanged(t *testing.T) {
	r := NewRouter(Options{Log: slog.New(slog.DiscardHandler)})
	still, changed, confirmed := keyOf("still"), keyOf("changed"), keyOf("confirmed")
	pods := map[types.NamespacedName]*runtime.Pod{}
	for _, key := range []types.NamespacedName{still, changed, confirmed} {
		r.entries[key] = &workerEntry{worker: &worker{key: key, messages: make(chan *workerMessage, 1), requestObservation: func(types.NamespacedName, bool) {}}}
		pods[key] = observedPod(true)
	}
	now := time.Now()
	relist := func(after time.Duration) (handed []string) {
		r.applySnapshot(t.Context(), runtime.Snapshot{IsComplete: true, AsOf: now.Add(after), Pods: maps.Clone(pods)})
		for key, e := range r.entries {
			select {
			case m := <-e.worker.messages:
				if o := m.requests.Observation; o == nil || o.Pod != pods[key] {
					t.Errorf("%s: got message %+v, want one with its observation", key, m)
				}
				handed = append(handed, key.Name)
			default:
			}
		}
		slices.Sort(handed)
		return handed
	}
	if got := relist(0); len(got) != 3 {
		t.Errorf("workers that the first relist sent a message to: got %q, want all", got)
	}
	pods[changed] = observedPod(true)
	r.entries[confirmed].worker.needsConfirmation.Store(true)
	if got := strings.Join(relist(time.Second), " "); got != "changed confirmed" {
		t.Errorf("workers that the second relist sent a message to: got %q, want \"changed\" and \"confirmed\"", got)
	}
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}
