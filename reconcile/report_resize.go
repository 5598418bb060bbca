package reconcile

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
	"podd/reconcile/status"
)

// resize returns the progress of resizing the pod.
func (w *worker) resize() status.Resize {
	var r status.Resize
	if w.in.Successor != nil || !plan.ResizePending(&w.in) {
		return r
	}
	if v := w.in.Verdict; v.Answer != plan.Admit {
		if r.Pending = (status.Reason{Reason: v1.PodReasonDeferred, Message: v.Message}); v.Never {
			r.Pending.Reason = v1.PodReasonInfeasible // the node is too small
		}
		return r
	}
	r.InProgress, r.Failed = true, w.in.History.ResizePod.Message
	for _, name := range slices.Sorted(maps.Keys(w.in.History.Containers)) {
		r.Failed = cmp.Or(r.Failed, w.in.History.Containers[name].Resize.Message)
	}
	return r
}
