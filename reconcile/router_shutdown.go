package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// A shutdown is a node shutdown in progress.
type shutdown struct {
	groups   []plan.ShutdownGroup
	progress plan.ShutdownProgress
	wake     *time.Timer // fires when the next group may be due
	// terminated contains the version of each pod for which terminate was called; nil if the
	// version is unknown.
	terminated map[types.NamespacedName]*manifest.Pod
	waiters    []chan error // channels on which calls of AwaitShutdown wait for their results
}

func newShutdown(groups []plan.ShutdownGroup) *shutdown {
	return &shutdown{groups: groups, wake: time.NewTimer(0), terminated: map[types.NamespacedName]*manifest.Pod{}}
}

// dueChannel returns the channel that receives a value when the next group may be due; nil if s is
// nil.
func (s *shutdown) dueChannel() <-chan time.Time {
	if s == nil {
		return nil
	}
	return s.wake.C
}

// ErrShutdownCancelled is the error of a wait for a node shutdown that was cancelled.
var ErrShutdownCancelled = errors.New("stopping the pods for the node shutdown: the shutdown was cancelled")

// Shutdown begins to stop every pod because the node shuts down, one priority group after the
// other. It does not wait for the pods. No pod is started any more, except pods in groups
// that are not due yet. If a shutdown is in progress, Shutdown does nothing. There must be at
// least one group, in ascending order of priority.
func (r *Router) Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error {
	return r.call(ctx, func() error {
		if r.shutdown == nil {
			r.shutdown = newShutdown(groups)
			r.recordShutdown("Shutdown manager detected shutdown event")
		}
		return nil
	})
}

// AwaitShutdown returns when every pod has stopped after Shutdown, or ctx is done. It returns
// ErrShutdownCancelled if there is no shutdown, or if CancelShutdown is called.
func (r *Router) AwaitShutdown(ctx context.Context) error {
	done := make(chan error, 1)
	err := r.call(ctx, func() error {
		if r.shutdown == nil {
			return ErrShutdownCancelled
		}
		r.shutdown.waiters = append(r.shutdown.waiters, done)
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, done, "stopping the pods for the node shutdown")
}

// CancelShutdown cancels a node shutdown. Pods from manifests on this node are started again when
// they have stopped.
func (r *Router) CancelShutdown(ctx context.Context) error {
	return r.call(ctx, func() error {
		if r.shutdown == nil {
			return nil
		}
		r.shutdown.endWaits(ErrShutdownCancelled)
		r.shutdown.wake.Stop()
		r.shutdown = nil
		r.recordShutdown("Shutdown manager detected shutdown cancellation")
		return nil
	})
}

// recordShutdown adds an event about the shutdown with the given message, and posts new orders.
func (r *Router) recordShutdown(message string) {
	r.unpublished.events = append(r.unpublished.events, event.NewNodeEvent(v1.EventTypeNormal, "Shutdown", message, time.Now()))
	r.unpublished.hasState = true
	r.postOrders()
}

// endWaits makes the waiting calls of AwaitShutdown return err.
func (s *shutdown) endWaits(err error) {
	for _, c := range s.waiters {
		c <- err
	}
	s.waiters = nil
}

// terminateDueGroups stops the pods of the groups that are due. It does nothing until
// r.allWorkersReported is set.
func (r *Router) terminateDueGroups() {
	s := r.shutdown
	if s == nil || !r.allWorkersReported {
		return
	}
	var pods []plan.ShutdownPod
	for key, e := range r.entries {
		// A directory that cannot be removed must not block the node shutdown.
		if e.report != nil && e.report.ExistsOnNode && !e.isFinished() && !e.report.OnDiskOnly {
			pods = append(pods, plan.ShutdownPod{Key: key, Priority: e.priority()})
		}
	}
	now := time.Now()
	turn, ends, wake := plan.AdvanceShutdown(s.groups, s.progress, pods, now)
	s.progress = turn
	for _, p := range ends {
		r.terminate(p, now)
	}
	if wake.IsZero() {
		s.wake.Stop()
	} else {
		s.wake.Reset(wake.Sub(now))
	}
	if len(pods) == 0 {
		s.endWaits(nil)
	}
}

// priority returns the priority of the version that runs or is being stopped; 0 if the manifest of
// that version is unknown.
func (e *workerEntry) priority() int32 {
	if p := e.report.Pod; p != nil && p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

// terminate requests the eviction of a pod, once for each version. If the pod is being
// stopped already, its grace period is limited to that of its group.
func (r *Router) terminate(p plan.ShutdownPod, now time.Time) {
	e, terminated := r.entries[p.Key], r.shutdown.terminated
	version := e.report.Version
	if before, was := terminated[p.Key]; was && before == version {
		return
	}
	terminated[p.Key] = version
	evicted := types.UID("")
	if version != nil && e.memory.Order.Desired != nil {
		evicted = version.UID
		r.postRequests(e, state.Requests{Eviction: &plan.Eviction{UID: version.UID, Hash: version.Hash, Reason: plan.ReasonTerminated, Message: plan.TerminatedMessage, Grace: p.Grace}})
	}
	if e.shortenGrace(evicted, p.Grace, now) {
		r.reservationsChanged = true
	}
}

// shortenGrace limits the grace period of a version that is being stopped. It ignores the version
// with the UID in evicted, because the eviction limits the grace period of that version.
// shortenGrace returns false if there is no other version, or if the grace period of the other
// version already ends in time.
func (e *workerEntry) shortenGrace(evicted types.UID, grace time.Duration, now time.Time) bool {
	i := slices.IndexFunc(e.report.UIDs, func(uid types.UID) bool { return uid != evicted })
	if i < 0 {
		return false
	}
	uid := e.report.UIDs[i]
	if d := e.memory.Deletion; d != nil && d.UID != evicted {
		if uid = d.UID; !d.At.Add(d.Grace).After(now.Add(grace)) {
			return false
		}
	}
	e.memory.Deletion = &plan.Deletion{UID: uid, Grace: grace, At: now}
	return true
}

// withoutResumable returns the records in past without the ends of pods that a node shutdown has
// stopped and that run again afterwards. Run calls it if no node shutdown is in progress.
func withoutResumable(past []state.Record) []state.Record {
	past = slices.Clone(past)
	for i := range past {
		if fin := past[i].Finished; fin != nil && fin.Resumes && !fin.WaitsForRestart() {
			past[i].Finished = nil
		}
	}
	return past
}
