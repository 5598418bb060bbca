package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/manifest/volumeplugin"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
)

// A workerUpdate is a message from a worker to the router.
type workerUpdate struct {
	key    types.NamespacedName
	worker *worker
	seq    uint64        // sequence number of the newest message that the worker has received
	report *state.Report // nil if there are only events
	events []event.Event // events since the previous update
}

// newReport returns the report of decision d, and stores the pod of the report in w.state.
func (w *worker) newReport(d plan.Decision) *state.Report {
	s := w.state
	r := &state.Report{
		Key: w.key, Version: s.PlanInput.Desired, Successor: s.PlanInput.Successor,
		Decision: d, DecisionSince: s.DecisionSince, Observed: s.PlanInput.Observed,
		Insufficient: s.PlanInput.Verdict.Insufficient,
		UIDs:         s.UIDs(),
		Pulls:        w.pulls(),
		ExistsOnNode: len(s.PlanInput.Observed)+len(s.PlanInput.PodDirs)+len(w.actions) > 0,
		OnDiskOnly:   s.IsOnDiskOnly(),
	}
	s, r.Pod = s.PodWithStatus(d)
	w.state = s
	if s.PlanInput.Desired == nil {
		r.TerminatingEviction = s.TerminatingEviction()
		t := s.Order.TerminatingPod
		r.IsInSource = t != nil && r.Pod != nil && r.Pod.UID == t.UID
		if p := s.PublishedVersion(); p != nil { // its volumes are mounted until it is stopped
			r.VolumePlugins = volumePlugins(p, s.PreviousRefs)
		}
		return r
	}
	r.IsInSource = true
	r.Finished, r.IsEndRecorded = s.PlanInput.History.Finished, s.IsEndRecorded()
	allocated, actual := plan.WithAllocatedSizes(&s.PlanInput), plan.WithActualSizes(&s.PlanInput)
	r.VolumePlugins = volumePlugins(s.PlanInput.Desired, s.Refs)
	r.ReservedVersions, r.IsResizePending = []*manifest.Pod{allocated}, plan.IsResizePending(&s.PlanInput)
	if actual != allocated {
		r.ReservedVersions = append(r.ReservedVersions, actual)
	}
	r.LastExits = map[string]plan.Exit{}
	for name, h := range s.PlanInput.History.Containers {
		if h.LastExit != nil {
			r.LastExits[name] = *h.LastExit
		}
	}
	return r
}

// volumePlugins returns state.Report.VolumePlugins for p, which refers to the objects in r.
func volumePlugins(p *manifest.Pod, r *refs.Resolved) map[string]string {
	var plugins map[string]string
	for i := range p.Object.Spec.Volumes {
		v := &p.Object.Spec.Volumes[i]
		plugin := ""
		if c := r.CSI(v); c != nil {
			plugin = volumeplugin.CSI(c.Driver)
		} else if c := r.Claim(render.ClaimName(p, v)); c != nil {
			plugin = volumeplugin.Name(v, c.Volume)
		}
		if plugin == "" {
			continue
		}
		if plugins == nil {
			plugins = map[string]string{}
		}
		plugins[v.Name] = plugin
	}
	return plugins
}
