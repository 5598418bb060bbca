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
	timer    *time.Timer // fires when the next group may be due
	// terminatedVersions contains the version of each pod for which terminate was called; nil if the
	// version is unknown.
	terminatedVersions map[types.NamespacedName]*manifest.Pod
	waiters            []chan error // channels on which calls of AwaitShutdown wait for their results
}

func newShutdown(groups []plan.ShutdownGroup) *shutdown {
	return &shutdown{groups: groups, timer: time.NewTimer(0), terminatedVersions: map[types.NamespacedName]*manifest.Pod{}}
}

// dueChannel returns the channel that receives a value when the next group may be due, or nil if s
// is nil.
func (s *shutdown) dueChannel() <-chan time.Time {
	if s == nil {
		return nil
	}
	return s.timer.C
}

// ErrShutdownCancelled is the error of AwaitShutdown if the node shutdown was cancelled.
var ErrShutdownCancelled = errors.New("stopping the pods for the node shutdown: the shutdown was cancelled")

// Shutdown begins to stop every pod because the node shuts down, one priority group after the
// other. It does not wait for the pods. No pod is started any more, except pods in groups that are
// not due yet. If a shutdown is already in progress, Shutdown does nothing. groups must contain at
// least one group, and must be in ascending order of priority.
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
		r.shutdown.timer.Stop()
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
	progress, duePods, nextDue := plan.AdvanceShutdown(s.groups, s.progress, pods, now)
	s.progress = progress
	for _, p := range duePods {
		r.terminate(p, now)
	}
	if nextDue.IsZero() {
		s.timer.Stop()
	} else {
		s.timer.Reset(nextDue.Sub(now))
	}
	if len(pods) == 0 {
		s.endWaits(nil)
	}
}

// priority returns the priority of the version that runs or is being stopped. It returns 0 if the
// manifest of that version is unknown.
func (e *workerEntry) priority() int32 {
	if p := e.report.Pod; p != nil && p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

// terminate requests the eviction of a pod, once for each version. If the pod is already being
// stopped, its grace period is limited to that of its group.
func (r *Router) terminate(p plan.ShutdownPod, now time.Time) {
	e, versions := r.entries[p.Key], r.shutdown.terminatedVersions
	version := e.report.Version
	if oldVersion, hasVersion := versions[p.Key]; hasVersion && oldVersion == version {
		return
	}
	versions[p.Key] = version
	evictedUID := types.UID("")
	if version != nil && e.memory.Order.Desired != nil {
		evictedUID = version.UID
		r.postRequests(e, state.Requests{Eviction: &plan.Eviction{UID: version.UID, Hash: version.Hash, Reason: plan.ReasonTerminated, Message: plan.TerminatedMessage, Grace: p.Grace}})
	}
	if e.shortenGrace(evictedUID, p.Grace, now) {
		r.reservationsChanged = true
	}
}

// shortenGrace limits the grace period of a version that is being stopped. It ignores the version
// with the UID evictedUID, because the eviction limits the grace period of that version.
// shortenGrace returns false if no other version is being stopped, or if the grace period of that
// version already ends in time.
func (e *workerEntry) shortenGrace(evictedUID types.UID, grace time.Duration, now time.Time) bool {
	i := slices.IndexFunc(e.report.UIDs, func(uid types.UID) bool { return uid != evictedUID })
	if i < 0 {
		return false
	}
	uid := e.report.UIDs[i]
	if d := e.memory.Deletion; d != nil && d.UID != evictedUID {
		if uid = d.UID; !d.At.Add(d.Grace).After(now.Add(grace)) {
			return false
		}
	}
	e.memory.Deletion = plan.NewDeletion(e.memory.Deletion, uid, grace, now)
	return true
}

// withoutResumable returns pastRecords without the ends of pods that a node shutdown has stopped
// and that run again after the shutdown. Run calls it if no node shutdown is in progress.
func withoutResumable(pastRecords []state.Record) []state.Record {
	pastRecords = slices.Clone(pastRecords)
	for i := range pastRecords {
		if fin := pastRecords[i].Finished; fin != nil && fin.Resumes && !fin.WaitsForRestart() {
			pastRecords[i].Finished = nil
		}
	}
	return pastRecords
}
