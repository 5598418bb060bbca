package reconcile

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/admission"
	"podd/reconcile/state"
	"podd/runtime"
)

// applySnapshot posts each observed pod to its worker. The first snapshot of all pods is posted
// together with a new order in one message, because the order depends on whether the runtime was
// observed. Later, an unchanged pod is posted only if its worker waits for a confirmation. So a
// snapshot of thousands of pods costs little if few of them have changed.
func (r *Router) applySnapshot(ctx context.Context, s runtime.Snapshot) {
	if s.AsOf.Before(r.snapshotTime) {
		return // a newer snapshot has already been applied
	}
	r.snapshotTime = s.AsOf
	r.storeObserved(s)
	for key, p := range s.Pods {
		if p != nil && hasOwnIncarnation(p) && s.AsOf.After(r.retiredAt[key]) {
			r.ensureEntry(ctx, key, nil)
		}
	}
	isFirstFull := s.IsComplete && !r.hasFullSnapshot
	r.hasFullSnapshot = r.hasFullSnapshot || s.IsComplete
	if isFirstFull {
		r.beginPressureWait()
	}
	if isFirstFull && r.desired != nil {
		r.resolve(r.desired.received) // desired pods keep the UIDs that they have in the snapshot
	}
	r.handleOrphans(ctx)
	if s.IsComplete {
		r.rereadUnreadable()
		r.checkInstances(ctx, s)
	}
	var memories map[types.NamespacedName]admission.Memory
	if isFirstFull {
		memories, _ = r.decideAdmission()
	}
	for key, e := range r.entries {
		p, isListed := s.Pods[key]
		if !isListed && !s.IsComplete {
			continue
		}
		if !isFirstFull && e.hasObservation(p) && !e.worker.needsConfirmation.Load() {
			continue
		}
		if isFirstFull {
			e.memory = memories[key]
		}
		r.postRequests(e, state.Requests{Observation: &state.Observation{Pod: p, AsOf: s.AsOf}})
	}
	r.endStopAllCalls()
}

// storeObserved stores the newest observation of every name. An observation of a retired
// name is ignored if it is older than the end of the name's last effect.
func (r *Router) storeObserved(s runtime.Snapshot) {
	observed := maps.Clone(r.observed)
	if s.IsComplete {
		observed = maps.Clone(s.Pods)
	}
	if observed == nil {
		observed = map[types.NamespacedName]*runtime.Pod{}
	}
	for key, p := range s.Pods {
		observed[key] = p
	}
	for key, end := range r.retiredAt {
		if _, isListed := s.Pods[key]; !isListed && !s.IsComplete {
			continue
		}
		if s.AsOf.After(end) {
			delete(r.retiredAt, key)
		} else {
			observed[key] = r.observed[key]
		}
	}
	r.observed = observed
}

// hasOwnIncarnation reports whether p has an incarnation that is not foreign.
func hasOwnIncarnation(p *runtime.Pod) bool {
	for _, inc := range p.Incarnations {
		if !inc.Foreign {
			return true
		}
	}
	return false
}
