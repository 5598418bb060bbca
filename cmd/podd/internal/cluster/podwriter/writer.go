package podwriter

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/server"
)

// A Writer writes the pods of this node to the API server. It patches the status of pods and
// creates mirror pods of static pods. It completes the deletion of a pod that is being deleted when
// the pod has been removed from this node. It does not affect how pods run. After every change it
// decides which request a pod needs. A pod has at most one request in flight.
type Writer struct {
	o *Options

	previousListCount int       // Snapshot.ListCount at the end of the previous connection
	lastListCount     int       // Snapshot.ListCount of the last snapshot
	retriedWatchCount int       // Options.WatchCount at the last retry of ignored patches
	retriedAt         time.Time // time of the last retry of ignored patches
	records           map[types.NamespacedName]*podRecord
	replies           chan reply
	requestsInFlight  int       // number of all requests in flight
	createsInFlight   int       // number of requests in flight that create mirror pods
	pausedUntil       time.Time // no request starts before this time, because the API server did not respond
	backoff           backoff.Backoff
	rejections        []Rejection
}

// MaxWrites limits the number of concurrent requests. maxCreates limits the number of concurrent
// requests that create mirror pods, so that a slow webhook does not delay status updates.
const (
	MaxWrites  = 8
	maxCreates = MaxWrites / 2
)

// Options configures a Writer. The fields whose comment allows nil, and IsAddressConfigured,
// are optional.
type Options struct {
	Client   *apiserver.Client
	State    server.Viewer // provides the pods of this node
	NodeName string        // name of the Node
	// IsAddressConfigured is set if the user has configured the node's address. Only then may the status
	// of a pod contain a loopback address.
	IsAddressConfigured bool
	// Pods contains the pods bound to the node, including mirror pods. WatchCount is the number of
	// watches of pods that have begun. Nodes contains the Node if it exists.
	Pods       *apiserver.Store[*v1.Pod]
	WatchCount *watchable.Value[int]
	Nodes      *apiserver.Store[*v1.Node]
	// Deletions maps the UID of each pod that is being deleted to the version of the first batch of
	// server.ClusterSource that contained the deletion.
	Deletions *watchable.Value[map[types.UID]uint64]
	// OnRejected is called when the set of pods that cannot be written to the API server changes.
	// Its argument contains all these pods, sorted by name. Calls are sequential.
	OnRejected func(ctx context.Context, all []Rejection)
	// OnStatusSynced is called after the status of a pod was written to the API server. A status may
	// contain several changes of the pod; took is the time since the first of them. Calls are
	// sequential. It may be nil.
	OnStatusSynced func(took time.Duration)
	Log            *slog.Logger
}

// New returns a writer for one connection. It must be called before the first list of the
// connection, because the writer waits for this list.
func New(o Options) *Writer {
	pods, _ := o.Pods.Get()
	return &Writer{
		o:                 &o,
		previousListCount: pods.ListCount, lastListCount: pods.ListCount, records: map[types.NamespacedName]*podRecord{}, replies: make(chan reply),
	}
}

// Run writes pods until ctx is done. It waits for the requests in flight before it returns.
func (w *Writer) Run(ctx context.Context) {
	defer func() {
		for ; w.requestsInFlight > 0; w.requestsInFlight-- {
			<-w.replies
		}
	}()
	for {
		view := w.o.State.View()
		pods, podsChanged := w.o.Pods.Get()
		deletions, deletionsChanged := w.o.Deletions.Get()
		node, nodesChanged := w.o.Nodes.Find(types.NamespacedName{Name: w.o.NodeName})
		newWatchCount, watchCountChanged := w.o.WatchCount.Get()
		var retry <-chan time.Time
		w.retryIgnoredPatches(newWatchCount, time.Now())
		if pods.ListCount > w.previousListCount && !view.Starting {
			wake := w.sync(ctx, view, pods, deletions, node, time.Now())
			if !wake.IsZero() {
				retry = time.After(time.Until(wake))
			}
			w.reportRejections(ctx)
		}
		select {
		case <-podsChanged:
		case <-deletionsChanged:
		case <-nodesChanged:
		case <-watchCountChanged:
		case <-w.o.State.Changed(view.Revision):
		case r := <-w.replies:
			w.handleReply(r, time.Now())
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// sync decides on all pods and starts requests. It returns the time at which it must be called
// again even if nothing changes, or the zero time.
func (w *Writer) sync(ctx context.Context, view *server.View, pods apiserver.Snapshot[*v1.Pod], deletions map[types.UID]uint64, node *v1.Node, now time.Time) (wake time.Time) {
	if pods.ListCount > w.lastListCount {
		w.lastListCount = pods.ListCount
		w.reset()
	}
	w.updateRecords(view, pods, now)
	for key, r := range w.records {
		next := r.retry.nextAttempt
		if w.pausedUntil.After(next) {
			next = w.pausedUntil
		}
		if !next.After(now) {
			if r.inFlight == verbNone && w.requestsInFlight < MaxWrites {
				w.decideAndSend(ctx, key, r, r.currentFacts(deletions, node, view, now), now)
			}
			next = r.outcomeExpiry()
		}
		if next.After(now) && (wake.IsZero() || next.Before(wake)) {
			wake = next
		}
	}
	return wake
}

// reset removes all delays, because the list that precedes the call shows that the API server is
// reachable. It also removes all outcomes, because the API server may have lost its data.
func (w *Writer) reset() {
	w.pausedUntil, w.backoff = time.Time{}, backoff.Backoff{}
	for _, r := range w.records {
		r.retry.wait, r.retry.nextAttempt = 0, time.Time{}
		r.outcome, r.facts = nil, podFacts{}
	}
}

// retryIgnoredPatches clears the ignored patches of all records when a watch has begun. The watch
// may be served by another API server, which supports more fields. retryIgnoredPatches clears
// patches at most once per apiserver.WatchTimeout. watchCount is the number of watches that have begun.
func (w *Writer) retryIgnoredPatches(watchCount int, now time.Time) {
	if watchCount == w.retriedWatchCount || now.Sub(w.retriedAt) < apiserver.WatchTimeout {
		return
	}
	w.retriedWatchCount = watchCount
	for _, r := range w.records {
		if r.ignoredPatch != "" {
			r.ignoredPatch, r.facts, w.retriedAt = "", podFacts{}, now
		}
	}
}

// updateRecords updates the records with the pods in the View and in the API server. It removes all
// records without a pod and without a request in flight.
func (w *Writer) updateRecords(view *server.View, pods apiserver.Snapshot[*v1.Pod], now time.Time) {
	for _, r := range w.records {
		r.local, r.cachedPod, r.isPresent = nil, nil, false
	}
	for _, p := range view.Pods {
		w.ensureRecord(types.NamespacedName(p.Key())).setLocal(p, now)
	}
	for key, p := range pods.Items {
		r := w.ensureRecord(key)
		r.cachedPod = p
		if r.retry.uid != p.UID {
			r.retry = retryState{} // the failed attempts were not for this pod
		}
	}
	for key, r := range w.records {
		if !r.isPresent && r.inFlight == verbNone {
			delete(w.records, key)
		}
	}
}

// ensureRecord returns the record for a pod name. It creates the record if it does not exist.
func (w *Writer) ensureRecord(key types.NamespacedName) *podRecord {
	r := w.records[key]
	if r == nil {
		r = &podRecord{}
		w.records[key] = r
	}
	r.isPresent = true
	return r
}

// decideAndSend decides which request the pod with the name key needs, and starts the request. It
// does nothing if f equals the facts of the last decision.
func (w *Writer) decideAndSend(ctx context.Context, key types.NamespacedName, r *podRecord, f podFacts, now time.Time) {
	if f == r.facts {
		return
	}
	r.facts = f
	f.now, f.isAddressConfigured = metav1.NewTime(now).Rfc3339Copy(), w.o.IsAddressConfigured
	s, rule, err := decideRequest(&f)
	if err != nil {
		w.o.Log.Error("encoding the status of a pod failed; the status is not sent to the API server", "pod", key, "err", err)
		return
	}
	r.problem = s.problem
	if s.verb == verbNone || s.verb == verbPatch && string(s.body) == r.ignoredPatch {
		r.retry = retryState{} // the failed request, if any, need not be retried
		if f.remote != nil {
			r.changedAt = time.Time{} // the API server has this status
		}
		return
	}
	if s.verb == verbCreate {
		if w.createsInFlight >= maxCreates {
			r.facts = podFacts{} // decide again when another create has completed
			return
		}
		w.createsInFlight++
	}
	if s.verb == verbPatch {
		s.changedAt, r.changedAt = r.changedAt, time.Time{}
	}
	w.o.Log.Debug("sending a request for a pod to the API server", "verb", s.verb, "pod", key, "rule", rule)
	r.inFlight = s.verb
	w.requestsInFlight++
	go func() { w.replies <- sendPodRequest(ctx, w.o.Client, key, s, f) }()
}
