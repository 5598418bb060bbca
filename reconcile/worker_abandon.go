package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// An abandonedStart is a start of a container for which the worker does not wait, because it may
// never return. Such a start creates no container, but it may still use the directory of its pod.
type abandonedStart struct {
	permit effect.Permit
	uid    types.UID
}

// cancelStarts cancels the container starts in progress. It abandons those that have not called the
// runtime. Abandoned starts do not count as in progress any more. anyAbandoned reports whether
// cancelStarts has abandoned a start.
func (w *worker) cancelStarts() (anyAbandoned bool) {
	for subject, action := range w.actions {
		if _, ok := action.action.(plan.StartContainer); !ok {
			continue
		}
		action.cancel()
		if action.permit.Take() {
			w.trace.endAction(action.span, result.Result{Canceled: true})
			delete(w.actions, subject)
			w.abandoned = append(w.abandoned, abandonedStart{permit: action.permit, uid: action.uid})
			anyAbandoned = true
		}
	}
	return anyAbandoned
}

// forgetAbandoned removes the start with result r from w.abandoned. wasAbandoned reports whether r
// is the result of an abandoned start.
func (w *worker) forgetAbandoned(r *actionResult) (wasAbandoned bool) {
	i := slices.IndexFunc(w.abandoned, func(s abandonedStart) bool { return s.permit == r.permit })
	if i < 0 {
		return false
	}
	w.abandoned = slices.Delete(w.abandoned, i, i+1)
	return true
}

// dirsInUse returns the UIDs of the pods whose directories an abandoned start may use.
func (w *worker) dirsInUse() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, g := range w.abandoned {
		uids[g.uid] = true
	}
	return uids
}
