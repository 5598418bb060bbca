package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// A writer writes the pods of this node to the API server: their status, mirror pods for
// static pods, and the deletion of pods that have left nothing here. It does not affect
// pods. It decides again on every change; each pod has at most one request in flight,
// with the state at that time.
type writer struct {
	o     *Options
	c     *client
	state server.Viewer
	// cluster contains the pods, the Node and the deleted pods.
	cluster *Cluster

	stale         int       // lists of the last snapshot of an earlier connection
	lastList      int       // lists of the last snapshot
	watched       int       // number of watches at the last retry of futile patches
	retriedFutile time.Time // time of that retry
	records       map[types.NamespacedName]*record
	replies       chan reply
	requests      int       // requests in flight
	creates       int       // those that create mirror pods
	hold          time.Time // no response: no requests before this time
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
		ending, endingChanged := w.cluster.deletions.get()
		nodes, nodesChanged := w.cluster.nodes.get()
		watched, watchedAnew := w.cluster.watchCount.get()
		var again <-chan time.Time
		w.retryFutile(watched, time.Now())
		if pods.lists > w.stale && !view.Starting {
			wake := w.sync(ctx, view, pods, ending, nodes.items[types.NamespacedName{Name: w.o.Node}], time.Now())
			if !wake.IsZero() {
				again = time.After(time.Until(wake))
			}
			w.reportRejections(ctx)
		}
		select {
		case <-podsChanged:
		case <-endingChanged:
		case <-nodesChanged:
		case <-watchedAnew:
		case <-w.state.Changed(view.Revision):
		case a := <-w.replies:
			w.handleReply(a, time.Now())
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// sync decides on all pods and starts requests. It returns the time of the next decision,
// or zero.
func (w *writer) sync(ctx context.Context, view *server.View, pods snapshot[*v1.Pod], ending map[types.UID]uint64, node *v1.Node, now time.Time) (wake time.Time) {
	if pods.lists > w.lastList {
		w.lastList = pods.lists
		w.reset()
	}
	w.updateRecords(view, pods)
	for key, r := range w.records {
		next := r.attempt.next
		if w.hold.After(next) {
			next = w.hold
		}
		if !next.After(now) {
			if r.inFlight == nothing && w.requests < maxWrites {
				w.consider(ctx, key, r, r.factsOf(ending, node, view, now), now)
			}
			next = r.wake()
		}
		if next.After(now) && (wake.IsZero() || next.Before(wake)) {
			wake = next
		}
	}
	return wake
}

// reset drops delays and responses after a new list, because the API server is reachable
// again and may have lost its data.
func (w *writer) reset() {
	w.hold, w.backoff = time.Time{}, backoff{}
	for _, r := range w.records {
		r.attempt.wait, r.attempt.next = 0, time.Time{}
		r.answer, r.facts = nil, facts{}
	}
}

// retryFutile retries patches without effect after a new watch, because it may be that of
// another API server, which supports more fields. It does so at most every watchTime.
func (w *writer) retryFutile(watched int, now time.Time) {
	if watched == w.watched || now.Sub(w.retriedFutile) < watchTime {
		return
	}
	w.watched = watched
	for _, r := range w.records {
		if r.futile != "" {
			r.futile, r.facts, w.retriedFutile = "", facts{}, now
		}
	}
}

// updateRecords updates the records with the pods of podd and of the API server.
func (w *writer) updateRecords(view *server.View, pods snapshot[*v1.Pod]) {
	for _, r := range w.records {
		r.mine, r.cached, r.isPresent = nil, nil, false
	}
	for _, p := range view.Pods {
		r := w.record(types.NamespacedName(p.Key()))
		r.mine = p
	}
	for key, p := range pods.items {
		r := w.record(key)
		r.cached = p
		if r.attempt.of != p.UID {
			r.attempt = attempted{} // a new pod with the same name
		}
	}
	for key, r := range w.records {
		if !r.isPresent && r.inFlight == nothing {
			delete(w.records, key)
		}
	}
}

func (w *writer) record(key types.NamespacedName) *record {
	r := w.records[key]
	if r == nil {
		r = &record{}
		w.records[key] = r
	}
	r.isPresent = true
	return r
}

// consider decides on one pod if its facts have changed.
func (w *writer) consider(ctx context.Context, key types.NamespacedName, r *record, f facts, now time.Time) {
	if f == r.facts {
		return
	}
	r.facts = f
	f.now, f.addressGiven = metav1.NewTime(now).Rfc3339Copy(), w.o.ProvidedIP != ""
	s, rule, err := decide(&f)
	if err != nil {
		w.o.Log.Error("nothing is told of a pod", "pod", key, "err", err) // it cannot be encoded
		return
	}
	r.problem = s.problem
	if s.verb == nothing || s.verb == patches && string(s.body) == r.futile {
		r.attempt = attempted{} // solved in another way
		return
	}
	if s.verb == create {
		if w.creates >= maxCreates {
			r.facts = facts{} // decided again after another create
			return
		}
		w.creates++
	}
	w.o.Log.Debug("cluster", "does", s.verb, "pod", key, "rule", rule)
	r.inFlight = s.verb
	w.requests++
	go func() { w.replies <- w.c.request(ctx, key, s, f) }()
}
