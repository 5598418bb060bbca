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
)

// shutdown is a machine on its way down.
type shutdown struct {
	groups []plan.ShutdownGroup
	turn   plan.Turn
	wake   *time.Timer
	// asked has the version of each pod that was told to end.
	asked   map[types.NamespacedName]*manifest.Pod
	waiting []chan error
}

func newShutdown(groups []plan.ShutdownGroup) *shutdown {
	return &shutdown{groups: groups, wake: time.NewTimer(0), asked: map[types.NamespacedName]*manifest.Pod{}}
}

// due is when the turn may be another's; s may be nil.
func (s *shutdown) due() <-chan time.Time {
	if s == nil {
		return nil
	}
	return s.wake.C
}

// ErrCancelled is that a shutdown of the machine was.
var ErrCancelled = errors.New("ending the pods for the machine's shutdown: it was cancelled")

// Shutdown ends every pod because the machine goes down, group by group of priority,
// and returns when that is under way. No pod is begun any more, but for those whose
// turn it is not yet. A shutdown that is under way keeps its groups, of which there is
// at least one, in rising order.
func (r *Router) Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error {
	return r.call(ctx, func() error {
		if r.shutdown == nil {
			r.shutdown = newShutdown(groups)
			r.shutdownChanged("Shutdown manager detected shutdown event")
		}
		return nil
	})
}

// AwaitShutdown returns when every pod has come to its end by Shutdown, or ctx is done.
func (r *Router) AwaitShutdown(ctx context.Context) error {
	done := make(chan error, 1)
	err := r.call(ctx, func() error {
		if r.shutdown == nil {
			return ErrCancelled
		}
		r.shutdown.waiting = append(r.shutdown.waiting, done)
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, done, "ending the pods for the machine's shutdown")
}

// Resume is that the machine does not go down after all: what a manifest on this
// machine stands for runs again once it has come to its end.
func (r *Router) Resume(ctx context.Context) error {
	return r.call(ctx, func() error {
		if r.shutdown == nil {
			return nil
		}
		r.shutdown.answer(ErrCancelled)
		r.shutdown.wake.Stop()
		r.shutdown = nil
		r.shutdownChanged("Shutdown manager detected shutdown cancellation")
		return nil
	})
}

func (r *Router) shutdownChanged(message string) {
	r.events = append(r.events, event.Node(v1.EventTypeNormal, "Shutdown", message, time.Now()))
	r.dirty = true
	r.orderAll()
}

func (s *shutdown) answer(err error) {
	for _, c := range s.waiting {
		c <- err
	}
	s.waiting = nil
}

// endNext ends those whose turn it is. What is on the machine must be known.
func (r *Router) endNext() {
	s := r.shutdown
	if s == nil || !r.started {
		return
	}
	var pods []plan.ShutdownPod
	for key, e := range r.entries {
		if e.report != nil && e.report.Exists && !e.rests() {
			pods = append(pods, plan.ShutdownPod{Key: key, Priority: e.priority()})
		}
	}
	now := time.Now()
	turn, ends, wake := plan.NextTurn(s.groups, s.turn, pods, now)
	s.turn = turn
	for _, p := range ends {
		r.endFor(p, now)
	}
	if wake.IsZero() {
		s.wake.Stop()
	} else {
		s.wake.Reset(wake.Sub(now))
	}
	if len(pods) == 0 {
		s.answer(nil)
	}
}

// priority is that of the version in force, or of the one that ends; 0 when podd
// does not know its manifest.
func (e *entry) priority() int32 {
	if p := e.report.Pod; p != nil && p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

// endFor tells a pod to end, once for each version. What ends already gets no more
// than the grace of its group.
func (r *Router) endFor(p plan.ShutdownPod, now time.Time) {
	e, asked := r.entries[p.Key], r.shutdown.asked
	version := e.report.Version
	if before, was := asked[p.Key]; was && before == version {
		return
	}
	asked[p.Key] = version
	evicted := types.UID("")
	if version != nil && e.order.desired != nil {
		evicted = version.UID
		o := e.order
		o.seen, o.pod = false, nil
		o.evict = &plan.Evict{UID: version.UID, Reason: plan.Terminated, Message: plan.TerminatedMessage, Grace: p.Grace}
		r.post(e, o)
	}
	if e.hasten(evicted, p.Grace, now) {
		r.order(p.Key, e, e.order.verdict)
	}
}

// hasten has what ends already, and is not the version evicted, end within grace; false
// says that it does, or there is nothing of it.
func (e *entry) hasten(evicted types.UID, grace time.Duration, now time.Time) bool {
	i := slices.IndexFunc(e.report.UIDs, func(uid types.UID) bool { return uid != evicted })
	if i < 0 {
		return false
	}
	uid := e.report.UIDs[i]
	if d := e.deletes; d != nil && d.UID != evicted {
		if uid = d.UID; !d.At.Add(d.Grace).After(now.Add(grace)) {
			return false
		}
	}
	e.deletes = &plan.Delete{UID: uid, Grace: grace, At: now}
	return true
}

// resume forgets the end of a pod by a shutdown that was cancelled.
func (w *worker) resume() {
	w.in.Evict, w.in.History.Finished, w.in.History.StartTime = nil, nil, time.Now()
	w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
}

// resumed are journals without such ends, of a machine that is up again.
func resumed(past []journal) []journal {
	past = slices.Clone(past)
	for i := range past {
		if fin := past[i].Finished; fin != nil && fin.Resumes {
			past[i].Finished = nil
		}
	}
	return past
}
