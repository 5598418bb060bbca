package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// update is a message from a worker to the router.
type update struct {
	key    types.NamespacedName
	worker *worker
	seq    uint64        // sequence number of the newest message that the worker has received
	report *state.Report // nil if there are only events
	events []event.Event // since the previous update
}

// newReport returns the report of decision d, and stores the pod of the report in w.state.
func (w *worker) newReport(d plan.Decision) *state.Report {
	s := &w.state
	r := &state.Report{
		Key: w.key, Version: s.In.Desired, Successor: s.In.Successor,
		Decision: d, Since: s.Since, Observed: s.In.Observed,
		UIDs:       s.UIDs(),
		Pulls:      w.pulls(),
		Exists:     len(s.In.Observed)+len(s.In.Dirs)+len(w.actions) > 0,
		OnDiskOnly: s.IsOnDiskOnly(),
	}
	w.state, r.Pod = s.PodWithStatus(d)
	if s.In.Desired == nil {
		return r
	}
	r.Finished = s.In.History.Finished
	allocated, actual := plan.WithAllocatedSizes(&s.In), plan.WithActualSizes(&s.In)
	r.Held, r.ResizePending = []*manifest.Pod{allocated}, plan.ResizePending(&s.In)
	if actual != allocated {
		r.Held = append(r.Held, actual)
	}
	r.LastExits = map[string]plan.Exit{}
	for name, h := range s.In.History.Containers {
		if h.LastExit != nil {
			r.LastExits[name] = *h.LastExit
		}
	}
	return r
}
