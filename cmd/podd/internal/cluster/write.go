package cluster

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// writer has the cluster know what runs here: the status of its pods, mirrors of
// static ones, and that nothing is left of those that it deleted. It touches no pod.
// All is looked at again with whatever is new; per pod there is one request at a
// time, of what podd shows then.
type writer struct {
	o     *Options
	c     *client
	state server.Viewer
	// of has the cluster's pods and Node, and which of the pods podd was told to end.
	of *Cluster

	stale   int       // sighting.anew of what an earlier life saw
	looked  int       // of the newest that was taken
	watched int       // of the watches that began, likewise
	hoped   time.Time // when what was futile was tried again
	records map[types.NamespacedName]*record
	replies chan reply
	asking  int       // requests under way
	making  int       // those of them that make a mirror
	hold    time.Time // nobody answers: nothing is asked before
	away    backoff
	told    []Refusal
}

// mostWrites is how many pods are written of at once, mostMade of them to make mirrors,
// which webhooks may hold up: statuses go on.
const (
	mostWrites = 8
	mostMade   = mostWrites / 2
)

func newWriter(c *Cluster, api *client) *writer {
	pods, _ := c.pods.get()
	return &writer{
		o: &c.o, c: api, state: c.state, of: c,
		stale: pods.anew, looked: pods.anew, records: map[types.NamespacedName]*record{}, replies: make(chan reply),
	}
}

// run does so until ctx is done.
func (w *writer) run(ctx context.Context) {
	defer func() {
		for ; w.asking > 0; w.asking-- {
			<-w.replies
		}
	}()
	for {
		view := w.state.View()
		pods, podsChanged := w.of.pods.get()
		ending, endingChanged := w.of.ending.get()
		nodes, nodesChanged := w.of.nodes.get()
		watched, watchedAnew := w.of.watched.get()
		var again <-chan time.Time
		w.hope(watched, time.Now())
		if pods.anew > w.stale && !view.Starting {
			wake := w.look(ctx, view, pods, ending, nodes.items[types.NamespacedName{Name: w.o.Node}], time.Now())
			if !wake.IsZero() {
				again = time.After(time.Until(wake))
			}
			w.tell(ctx)
		}
		select {
		case <-podsChanged:
		case <-endingChanged:
		case <-nodesChanged:
		case <-watchedAnew:
		case <-w.state.Changed(view.Revision):
		case a := <-w.replies:
			w.take(a, time.Now())
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// look decides on every pod of which something is new, and asks for what is to be
// done. It returns when to look again by itself; zero: not.
func (w *writer) look(ctx context.Context, view *server.View, pods sighting[*v1.Pod], ending map[types.UID]uint64, node *v1.Node, now time.Time) (wake time.Time) {
	if pods.anew > w.looked {
		w.looked = pods.anew
		w.begin()
	}
	w.note(view, pods)
	for key, r := range w.records {
		next := r.attempt.next
		if w.hold.After(next) {
			next = w.hold
		}
		if !next.After(now) {
			if r.asked == nothing && w.asking < mostWrites {
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

// begin waits for nothing that failed, and makes nothing of what was answered: the
// cluster is back, perhaps without it.
func (w *writer) begin() {
	w.hold, w.away = time.Time{}, backoff{}
	for _, r := range w.records {
		r.attempt.wait, r.attempt.next = 0, time.Time{}
		r.answer, r.facts = nil, facts{}
	}
}

// hope has what an API server made nothing of be tried again: with a new watch it may
// be another, which knows more. Who ends watches early is no reason to ask as often.
func (w *writer) hope(watched int, now time.Time) {
	if watched == w.watched || now.Sub(w.hoped) < watchTime {
		return
	}
	w.watched = watched
	for _, r := range w.records {
		if r.futile != "" {
			r.futile, r.facts, w.hoped = "", facts{}, now
		}
	}
}

// note takes what podd shows and what the cluster has.
func (w *writer) note(view *server.View, pods sighting[*v1.Pod]) {
	for _, r := range w.records {
		r.mine, r.sighted, r.there = nil, nil, false
	}
	for _, p := range view.Pods {
		r := w.record(types.NamespacedName(p.Key()))
		r.mine = p
	}
	for key, p := range pods.items {
		r := w.record(key)
		r.sighted = p
		if r.attempt.of != p.UID {
			r.attempt = attempted{} // of another, of its name
		}
	}
	for key, r := range w.records {
		if !r.there && r.asked == nothing {
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
	r.there = true
	return r
}

// consider decides on one pod, if anything is new since it was decided on last.
func (w *writer) consider(ctx context.Context, key types.NamespacedName, r *record, f facts, now time.Time) {
	if f == r.facts {
		return
	}
	r.facts = f
	f.now = metav1.NewTime(now).Rfc3339Copy()
	s, rule, err := decide(&f)
	if err != nil {
		w.o.Log.Error("nothing is told of a pod", "pod", key, "err", err) // it cannot be encoded
		return
	}
	r.trouble = s.trouble
	if s.verb == nothing || s.verb == patches && string(s.body) == r.futile {
		r.attempt = attempted{} // it came about in another way
		return
	}
	if s.verb == create {
		if w.making >= mostMade {
			r.facts = facts{} // it is its turn when another is made
			return
		}
		w.making++
	}
	w.o.Log.Debug("cluster", "does", s.verb, "pod", key, "rule", rule)
	r.asked = s.verb
	w.asking++
	go func() { w.replies <- w.c.request(ctx, key, s, f) }()
}
