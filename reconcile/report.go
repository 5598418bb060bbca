package reconcile

import (
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// Report is what a worker publishes of its pod after each decision. Immutable.
type Report struct {
	Key types.NamespacedName
	// Pod is the version in force, with its status; nil while something that
	// nothing wants is being removed.
	Pod *v1.Pod
	// Version is the manifest of Pod, Successor the one that waits to take
	// over; both may be nil.
	Version, Successor *manifest.Pod
	// Held are the sizes of Version: that which it is given and, where it is
	// another, that which it has. Unsized says that these are not as it is written.
	Held    []*manifest.Pod
	Unsized bool
	// Decision is the last one; Since is when its rule began to match.
	Decision plan.Decision
	Since    time.Time
	// Finished is how Version ran to its end; nil while it has not.
	Finished *plan.Finished
	// Last has each container's last exit, by name.
	Last map[string]plan.Exit
	// Pulls are the images that are being fetched, in the order of the containers'
	// names.
	Pulls []Pull
	// Exists says that anything of the pod is on this machine.
	Exists bool
	// Observed as the decision saw it.
	Observed []runtime.Incarnation
	// UIDs of which this name has anything on this machine.
	UIDs []types.UID

	worker *worker
	seq    uint64
	events []event.Event // since the report before
	// quiet says that there is nothing in it but events.
	quiet bool
}

// says tells whether a later report has nothing to add for those who watch.
func (r *Report) says(later *Report) bool {
	return r.Pod == later.Pod && r.Version == later.Version && r.Successor == later.Successor &&
		r.Finished == later.Finished && r.Exists == later.Exists && r.Unsized == later.Unsized && r.Since.Equal(later.Since) &&
		maps.Equal(r.Last, later.Last) && slices.Equal(r.Pulls, later.Pulls) && reflect.DeepEqual(r.Decision, later.Decision)
}

// ephemeral tells whether a container was added to the pod as it ran.
func (r *Report) ephemeral(name string) bool {
	return r.Version != nil && slices.ContainsFunc(r.Version.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

func terminated(e *plan.Exit) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: e.Code, Reason: e.Reason, Message: status.Message(e.Message, e.Said), ContainerID: e.ID,
		StartedAt: metav1.NewTime(e.StartedAt), FinishedAt: metav1.NewTime(e.FinishedAt),
	}
}

func (w *worker) reportOf(d plan.Decision) Report {
	if d.Rule != w.rule {
		w.rule, w.ruleSince = d.Rule, w.in.Now
	}
	r := Report{
		Key: w.key, Version: w.in.Desired, Successor: w.in.Successor,
		Decision: d, Since: w.ruleSince, Observed: w.in.Observed, worker: w, seq: w.seq,
		UIDs:   w.uids(),
		Pulls:  w.pulls(),
		Exists: len(w.in.Observed)+len(w.in.Dirs)+len(w.flights) > 0,
	}
	if w.in.Desired == nil {
		r.Pod = w.leaving()
		return r
	}
	r.Finished = w.in.History.Finished
	allocated, actual := plan.Allocated(&w.in), plan.Actual(&w.in)
	r.Held, r.Unsized = []*manifest.Pod{allocated}, plan.Unsized(&w.in)
	if actual != allocated {
		r.Held = append(r.Held, actual)
	}
	r.Last = map[string]plan.Exit{}
	for name, h := range w.in.History.Containers {
		if h.LastExit != nil {
			r.Last[name] = *h.LastExit
		}
	}
	r.Pod = w.pod(d)
	return r
}

// uids are those of pods of ours, and of their directories.
func (w *worker) uids() []types.UID {
	uids := make([]types.UID, 0, len(w.in.Dirs))
	for _, dir := range w.in.Dirs {
		uids = append(uids, dir.UID) // every incarnation of ours has one
	}
	return uids
}

// pod is the version in force with its status. The object is made anew only
// when the status changed.
func (w *worker) pod(d plan.Decision) *v1.Pod {
	if w.in.Desired.Over() && len(w.in.Observed) == 0 {
		w.published, w.publishedFrom = w.in.Desired.Spec, w.in.Desired
		return w.published
	}
	st := status.Of(w.statusFacts(d))
	if w.published != nil && w.publishedFrom == w.in.Desired && equality.Semantic.DeepEqual(w.published.Status, st) {
		return w.published
	}
	p := *w.in.Desired.Spec
	p.Status = st
	w.published, w.publishedFrom = &p, w.in.Desired
	return w.published
}

// leaving is the last version with the status of its end; nil when podd never
// had its manifest.
func (w *worker) leaving() *v1.Pod {
	w.takeLeaving()
	if w.published == nil {
		return nil
	}
	p := *w.published
	if p.DeletionTimestamp == nil {
		now := metav1.NewTime(w.in.Now)
		p.DeletionTimestamp = &now
	}
	if s := w.in.History.Stopping; s != nil {
		seconds := int64(s.Grace / time.Second)
		p.DeletionGracePeriodSeconds = &seconds
	}
	facts := status.Facts{
		Pod: w.publishedFrom, Observed: w.in.Observed, StartTime: w.in.History.StartTime,
		HostIPs: w.hostIPs, RuntimeName: w.runtimeName, Said: w.in.History.Said, Previous: &w.published.Status,
		RecursiveReadOnly: w.recursiveReadOnly(w.publishedFrom),
		Now:               w.in.Now, Terminating: true, Containers: map[string]status.ContainerFacts{},
	}
	w.tellProbes(&facts)
	w.tellHooks(&facts)
	p.Status = status.Of(facts)
	w.published = &p
	return w.published
}

// takeLeaving has the last version be as its source has it, who perhaps alone does.
func (w *worker) takeLeaving() {
	from := w.order.leaving
	if from == nil || from == w.publishedFrom || w.published != nil && !sameVersion(from, w.publishedFrom) {
		return
	}
	p := *from.Spec
	if w.published != nil {
		p.Status = w.published.Status
	}
	w.published, w.publishedFrom = &p, from
}

// recursiveReadOnly tells whether the pod's runtime handler serves such mounts.
func (w *worker) recursiveReadOnly(p *manifest.Pod) bool {
	return w.render != nil && w.render.Handler(p).RecursiveReadOnlyMounts
}

func (w *worker) statusFacts(d plan.Decision) status.Facts {
	f := status.Facts{
		Pod: w.in.Desired, Observed: w.in.Observed,
		Containers:  map[string]status.ContainerFacts{},
		StartTime:   w.in.History.StartTime,
		HostIPs:     w.hostIPs,
		Said:        w.in.History.Said,
		RuntimeName: w.runtimeName,
		Now:         w.in.Now,

		RecursiveReadOnly: w.recursiveReadOnly(w.in.Desired),
	}
	if w.published != nil && w.publishedFrom != nil && sameVersion(w.publishedFrom, w.in.Desired) {
		f.Previous = &w.published.Status
	} else if ofCluster(w.in.Desired) && w.in.Desired.Spec.Status.Phase != "" {
		f.Previous = &w.in.Desired.Spec.Status // what an earlier podd said
	}
	if d.Phase == plan.PhaseWait {
		f.Waiting = status.Reason{Reason: d.Reason, Message: d.Why}
	}
	if fin := w.in.History.Finished; fin != nil {
		f.Finished = v1.PodSucceeded
		if fin.Failed {
			f.Finished = v1.PodFailed
		}
		if fin.Reason != "" {
			f.Failed = &status.Reason{Reason: fin.Reason, Message: fin.Message}
		}
	}
	for _, s := range d.Steps {
		f.Containers[s.Container] = status.ContainerFacts{Waiting: status.Reason{Reason: s.Reason, Message: s.Why}}
	}
	for name, h := range w.in.History.Containers {
		c := f.Containers[name]
		c.Restarts = int32(h.Attempt)
		if h.LastExit != nil {
			c.LastExit = terminated(h.LastExit)
			c.Restarts = int32(h.LastExit.Attempt)
		}
		f.Containers[name] = c
	}
	w.tellProbes(&f)
	w.tellHooks(&f)
	f.Allocated, f.Actual, f.Resize = plan.Allocated(&w.in), plan.Actual(&w.in), w.resize()
	return f
}
