package reconcile

import (
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A Report is the state of a pod that a worker publishes after a decision. It is immutable.
type Report struct {
	Key types.NamespacedName
	// Pod is the version in force, with its status. It is nil while podd removes something
	// that is not desired and that it never had a manifest of.
	Pod *v1.Pod
	// Version is the manifest of Pod, Successor the one that waits to replace it. Both may
	// be nil.
	Version, Successor *manifest.Pod
	// Held are the sizes of Version: the allocated one and, if it differs, the actual one.
	// Unsized reports whether they differ from the desired size.
	Held    []*manifest.Pod
	Unsized bool
	// Decision is the last decision. Since is when its rule began to match.
	Decision plan.Decision
	Since    time.Time
	// Finished is how Version terminated; nil if it has not.
	Finished *plan.Finished
	// Last has the last exit of each container, by name.
	Last map[string]plan.Exit
	// Pulls are the image pulls in progress, sorted by container name.
	Pulls []Pull
	// Exists reports whether anything of the pod is on this node.
	Exists bool
	// OnDiskOnly reports whether nothing of the pod runs and removing its data on disk
	// failed.
	OnDiskOnly bool
	// Observed has the incarnations that the decision was made on.
	Observed []runtime.Incarnation
	// UIDs has the UIDs of all pods of this name that have something on this node.
	UIDs []types.UID

	worker *worker
	seq    uint64
	events []event.Event // since the previous report
	// eventsOnly reports whether only events is set.
	eventsOnly bool
}

// equal reports whether a later report shows readers nothing new.
func (r *Report) equal(later *Report) bool {
	return r.Pod == later.Pod && r.Version == later.Version && r.Successor == later.Successor &&
		r.Finished == later.Finished && r.Exists == later.Exists && r.OnDiskOnly == later.OnDiskOnly && r.Unsized == later.Unsized && r.Since.Equal(later.Since) &&
		maps.Equal(r.Last, later.Last) && slices.Equal(r.Pulls, later.Pulls) && reflect.DeepEqual(r.Decision, later.Decision)
}

// isEphemeral reports whether a container is an ephemeral one.
func (r *Report) isEphemeral(name string) bool {
	return r.Version != nil && slices.ContainsFunc(r.Version.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// newReport returns the report of a decision.
func (w *worker) newReport(d plan.Decision) Report {
	s := &w.state
	r := Report{
		Key: w.key, Version: s.In.Desired, Successor: s.In.Successor,
		Decision: d, Since: s.Since, Observed: s.In.Observed, worker: w, seq: w.seq,
		UIDs:       s.UIDs(),
		Pulls:      w.pulls(),
		Exists:     len(s.In.Observed)+len(s.In.Dirs)+len(w.flights) > 0,
		OnDiskOnly: s.OnDiskOnly(),
	}
	w.state, r.Pod = s.Publish(d)
	if s.In.Desired == nil {
		return r
	}
	r.Finished = s.In.History.Finished
	allocated, actual := plan.Allocated(&s.In), plan.Actual(&s.In)
	r.Held, r.Unsized = []*manifest.Pod{allocated}, plan.Unsized(&s.In)
	if actual != allocated {
		r.Held = append(r.Held, actual)
	}
	r.Last = map[string]plan.Exit{}
	for name, h := range s.In.History.Containers {
		if h.LastExit != nil {
			r.Last[name] = *h.LastExit
		}
	}
	return r
}
