package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// givenUp is a start that may never return. It creates nothing, but may use the directory
// of its pod.
type givenUp struct {
	permit effect.Permit
	uid    types.UID
}

// cancelStarts cancels the starts of containers in progress. It reports whether it gave up
// one that had not called the runtime. Such a start is not in progress any more.
func (w *worker) cancelStarts() (any bool) {
	for subject, fl := range w.flights {
		if _, ok := fl.action.(plan.StartContainer); !ok {
			continue
		}
		fl.cancel()
		if fl.permit.Take() {
			delete(w.flights, subject)
			w.givenUp = append(w.givenUp, givenUp{permit: fl.permit, uid: fl.uid})
			any = true
		}
	}
	return any
}

// returned reports whether f is the result of a start that was given up, and forgets it.
func (w *worker) returned(f ended) bool {
	at := slices.IndexFunc(w.givenUp, func(g givenUp) bool { return g.permit == f.permit })
	if at < 0 {
		return false
	}
	w.givenUp = slices.Delete(w.givenUp, at, at+1)
	return true
}

// used returns the UIDs of the pods with directories that a given-up start may use.
func (w *worker) used() map[types.UID]bool {
	used := map[types.UID]bool{}
	for _, g := range w.givenUp {
		used[g.uid] = true
	}
	return used
}
