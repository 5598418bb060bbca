package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// A writer writes the pods of this node to the API server: their status, mirror pods of static
// pods, and the deletion of pods of which nothing is left on this node. It does not affect how
// pods run. It decides on each pod after every change. A pod has at most one request in flight.
type writer struct {
	o     *Options
	c     *client
	state server.Viewer
	// cluster contains the pods, the Node and the deleted pods.
	cluster *Cluster

	stale         int       // snapshot.lists at the end of the previous connection
	lastList      int       // snapshot.lists of the last snapshot
	watched       int       // number of watches at the last retry of futile patches
	retriedFutile time.Time // time of that retry
	records       map[types.NamespacedName]*record
	replies       chan reply
	requests      int       // requests in flight
	creates       int       // those that create mirror pods
	pausedUntil   time.Time // no requests before this time, because there was no response
	backoff       backoff
	rejections    []Rejection
}

// maxWrites limits concurrent requests, and maxCreates those that create mirror pods, so
// that a slow webhook does not delay status updates.
const (
	maxWrites  = 8
	maxCreates = maxWrites / 2
)

func newWriter(c *Cluster, api *client) *writer {
	pods, _ := c.pods.get()
	return &writer{
		o: &c.o, c: api, state: c.state, cluster: c,
		stale: pods.lists, lastList: pods.lists, records: map[types.NamespacedName]*record{}, replies: make(chan reply),
	}
}

// run writes pods until ctx is done.
func (w *writer) run(ctx context.Context) {
	defer func() {
		for ; w.requests > 0; w.requests-- {
			<-w.replies
		}
	}()
	for {
		view := w.state.View()
		pods, podsChanged := w.cluster.pods.get()
		deletions, deletionsChanged := w.cluster.deletions.get()
		nodes, nodesChanged := w.cluster.nodes.get()
		watched, watchCountChanged := w.cluster.watchCount.get()
		var retry <-chan time.Time
		w.retryFutile(watched, time.Now())
		if pods.lists > w.stale && !view.Starting {
			wake := w.sync(ctx, view, pods, deletions, nodes.items[types.NamespacedName{Name: w.o.Node}], time.Now())
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
		case <-w.state.Changed(view.Revision):
		case r := <-w.replies:
			w.handleReply(r, time.Now())
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// sync decides on all pods and starts requests. It returns the time at which it must be called
// again, or zero.
func (w *writer) sync(ctx context.Context, view *server.View, pods snapshot[*v1.Pod], deletions map[types.UID]uint64, node *v1.Node, now time.Time) (wake time.Time) {
	if pods.lists > w.lastList {
		w.lastList = pods.lists
		w.reset()
	}
	w.updateRecords(view, pods)
	for key, r := range w.records {
		next := r.attempt.next
		if w.pausedUntil.After(next) {
			next = w.pausedUntil
		}
		if !next.After(now) {
			if r.inFlight == verbNone && w.requests < maxWrites {
				w.consider(ctx, key, r, r.currentFacts(deletions, node, view, now), now)
			}
			next = r.wake()
		}
		if next.After(now) && (wake.IsZero() || next.Before(wake)) {
			wake = next
		}
	}
	return wake
}

// reset drops delays and outcomes after a new list, because the API server is reachable again
// and may have lost its data.
func (w *writer) reset() {
	w.pausedUntil, w.backoff = time.Time{}, backoff{}
	for _, r := range w.records {
		r.attempt.wait, r.attempt.next = 0, time.Time{}
		r.outcome, r.facts = nil, facts{}
	}
}

// retryFutile retries patches without effect when a watch has begun, because it may be that of
// another API server, which supports more fields. It does so at most every watchTimeout.
func (w *writer) retryFutile(watched int, now time.Time) {
	if watched == w.watched || now.Sub(w.retriedFutile) < watchTimeout {
		return
	}
	w.watched = watched
	for _, r := range w.records {
		if r.futile != "" {
			r.futile, r.facts, w.retriedFutile = "", facts{}, now
		}
	}
}

// updateRecords updates the records with the pods that podd shows and those of the API server.
func (w *writer) updateRecords(view *server.View, pods snapshot[*v1.Pod]) {
	for _, r := range w.records {
		r.local, r.cached, r.isPresent = nil, nil, false
	}
	for _, p := range view.Pods {
		r := w.record(types.NamespacedName(p.Key()))
		r.local = p
	}
	for key, p := range pods.items {
		r := w.record(key)
		r.cached = p
		if r.attempt.of != p.UID {
			r.attempt = retryState{} // a new pod with the same name
		}
	}
	for key, r := range w.records {
		if !r.isPresent && r.inFlight == verbNone {
			delete(w.records, key)
		}
	}
}

// record returns the record for a pod name, and creates it if it does not exist.
func (w *writer) record(key types.NamespacedName) *record {
	r := w.records[key]
	if r == nil {
		r = &record{}
		w.records[key] = r
	}
	r.isPresent = true
	return r
}

// consider decides on one pod if its facts have changed, and starts a request if needed.
func (w *writer) consider(ctx context.Context, key types.NamespacedName, r *record, f facts, now time.Time) {
	if f == r.facts {
		return
	}
	r.facts = f
	f.now, f.addressGiven = metav1.NewTime(now).Rfc3339Copy(), w.o.ProvidedIP != ""
	s, rule, err := decide(&f)
	if err != nil {
		w.o.Log.Error("encoding a pod status failed; not sending it", "pod", key, "err", err)
		return
	}
	r.problem = s.problem
	if s.verb == verbNone || s.verb == verbPatch && string(s.body) == r.futile {
		r.attempt = retryState{} // no longer needed
		return
	}
	if s.verb == verbCreate {
		if w.creates >= maxCreates {
			r.facts = facts{} // decide again when another create has completed
			return
		}
		w.creates++
	}
	w.o.Log.Debug("sending pod request", "verb", s.verb, "pod", key, "rule", rule)
	r.inFlight = s.verb
	w.requests++
	go func() { w.replies <- w.c.request(ctx, key, s, f) }()
}
