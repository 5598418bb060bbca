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

// terminated returns the container status of an exit.
func terminated(e *plan.Exit) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: e.Code, Reason: e.Reason, Message: status.Message(e.Message, e.TerminationMessage), ContainerID: e.ID,
		StartedAt: metav1.NewTime(e.StartedAt), FinishedAt: metav1.NewTime(e.FinishedAt),
	}
}

// newReport returns the report of a decision.
func (w *worker) newReport(d plan.Decision) Report {
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
	r.OnDiskOnly = w.onDiskOnly()
	if w.in.Desired == nil {
		r.Pod = w.leaving()
		return r
	}
	r.Finished = w.in.History.Finished
	allocated, actual := plan.Allocated(&w.in), plan.Actual(&w.in)
	r.Held, r.Unsized = []*manifest.Pod{allocated}, plan.ResizePending(&w.in)
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

// onDiskOnly returns Report.OnDiskOnly.
func (w *worker) onDiskOnly() bool {
	runs := func(inc runtime.Incarnation) bool { return !inc.Foreign && plan.Live(&inc) }
	failed := func(d plan.Dir) bool { return w.in.History.Cleanup[plan.RemoveDir{UID: d.UID}.Subject()].Count > 0 }
	return !slices.ContainsFunc(w.in.Observed, runs) && slices.ContainsFunc(w.in.Dirs, failed)
}

// uids returns the UIDs of the pod's own incarnations and of their directories.
func (w *worker) uids() []types.UID {
	uids := make([]types.UID, 0, len(w.in.Dirs))
	for _, dir := range w.in.Dirs {
		uids = append(uids, dir.UID) // every incarnation of ours has one
	}
	return uids
}

// pod returns the version in force with its status. It returns the same object while the
// status does not change.
func (w *worker) pod(d plan.Decision) *v1.Pod {
	if w.in.Desired.Over() && len(w.in.Observed) == 0 {
		w.published, w.publishedFrom = w.in.Desired.Spec, w.in.Desired
		return w.published
	}
	if !w.hasObserved && ofCluster(w.in.Desired) && w.in.Desired.Spec.Status.Phase != "" {
		// The runtime was not observed yet, so nothing is known to be lost.
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

// leaving returns the last version with the status of its termination; nil if podd never
// had its manifest.
func (w *worker) leaving() *v1.Pod {
	w.applyLeaving()
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
	if !w.hasObserved { // the state of its containers is not known yet
		w.published = &p
		return w.published
	}
	facts := status.Facts{
		Pod: w.publishedFrom, Observed: w.in.Observed, StartTime: w.startTime,
		HostIPs: w.hostIPs(), RuntimeName: w.runtimeName, TerminationMessages: w.in.History.TerminationMessages, Previous: &w.published.Status,
		RecursiveReadOnly: w.recursiveReadOnly(w.publishedFrom),
		Now:               w.in.Now, Terminating: true, Containers: map[string]status.ContainerFacts{},
	}
	w.addProbeFacts(&facts)
	w.addHookFacts(&facts)
	p.Status = status.Of(facts)
	w.published = &p
	return w.published
}

// applyLeaving replaces the last version by that of its source, because podd may not have
// had its manifest before.
func (w *worker) applyLeaving() {
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

// hostIPs returns the node's addresses; nil if they are not known yet.
func (w *worker) hostIPs() []string {
	if w.render == nil {
		return nil
	}
	return w.render.HostIPs
}

// recursiveReadOnly reports whether the pod's runtime handler supports recursive read-only
// mounts.
func (w *worker) recursiveReadOnly(p *manifest.Pod) bool {
	return w.render != nil && w.render.Handler(p).RecursiveReadOnlyMounts
}

// statusFacts returns the facts from which the status of the version in force is computed.
func (w *worker) statusFacts(d plan.Decision) status.Facts {
	f := status.Facts{
		Pod: w.in.Desired, Observed: w.in.Observed,
		Containers:          map[string]status.ContainerFacts{},
		StartTime:           w.startTime,
		HostIPs:             w.hostIPs(),
		Unrecorded:          d.RecordFirst && w.in.History.Finished == nil,
		TerminationMessages: w.in.History.TerminationMessages,
		RuntimeName:         w.runtimeName,
		Now:                 w.in.Now,

		RecursiveReadOnly: w.recursiveReadOnly(w.in.Desired),
	}
	if w.published != nil && w.publishedFrom != nil && sameVersion(w.publishedFrom, w.in.Desired) {
		f.Previous = &w.published.Status
	} else if ofCluster(w.in.Desired) && w.in.Desired.Spec.Status.Phase != "" {
		f.Previous = &w.in.Desired.Spec.Status // the status that an earlier podd reported
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
		c.Restarts = int32(h.Restarts)
		if h.LastExit != nil {
			c.LastExit = terminated(h.LastExit)
			c.Restarts = int32(h.LastExit.Attempt - h.LastExit.Skipped)
		}
		f.Containers[name] = c
	}
	w.addProbeFacts(&f)
	w.addHookFacts(&f)
	f.Allocated, f.Actual, f.Resize = plan.Allocated(&w.in), plan.Actual(&w.in), w.resize()
	return f
}
