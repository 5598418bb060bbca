package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// order is what the router tells a worker: always the whole of what it wants,
// so that a newer one can replace one not yet read.
type order struct {
	seq     uint64
	desired *manifest.Pod
	// supply is what the objects beside desired hold for it, earlierSupply for
	// the version that the worker had in force, where that is another.
	supply        *manifest.Supply
	earlier       *manifest.Pod
	earlierSupply *manifest.Supply

	certain bool
	verdict plan.Verdict
	node    plan.Node
	runtime string // its name
	render  *render.Node
	userIDs uint32        // see Router.userIDs
	leaving *manifest.Pod // its source wants it ended; nil: it wants it, or nothing
	evict   *plan.Evict
	deletes *plan.Delete // stays until there is another, or it is over
	restart []string     // container names to restart once; "" is all
	added   []addition
	hurry   bool // see plan.Input
	drivers uint64
	seen    bool // pod and asOf are an observation
	stale   bool // which is older than the wish for the pod
	pod     *runtime.Pod
	asOf    time.Time
}

// after merges an order that was not read into the one that replaces it.
func (o order) after(unread order) order {
	o.restart = append(slices.Clone(unread.restart), o.restart...)
	o.added = append(slices.Clone(unread.added), o.added...)
	if o.evict == nil {
		o.evict = unread.evict
	}
	if !o.seen && unread.seen {
		o.seen, o.pod, o.asOf = true, unread.pod, unread.asOf
	}
	o.stale = o.stale || unread.stale
	return o
}

// worker cares for one pod name. All fields below orders belong to the
// goroutine in run.
type worker struct {
	key      types.NamespacedName
	effects  *Effects
	journals Journals
	refresh  func(types.NamespacedName)
	report   func(Report)
	hostIPs  []string
	log      *slog.Logger

	orders chan order // capacity 1, see post
	facts  chan fact
	heard  chan fetch // from effects under way

	in          plan.Input
	bare        *manifest.Pod // what in.Desired is made of: the manifest's, or as it was begun
	seq         uint64
	order       order // the newest
	supply      *manifest.Supply
	nextSupply  *manifest.Supply
	runtimeName string
	render      *render.Node
	userIDs     uint32
	flights     map[string]flight
	effectEnd   time.Time // of the newest observable effect: the barrier
	looked      bool      // the runtime was seen at least once
	past        map[types.UID]journal
	said        said
	told        plan.Decision // the last one reported
	events      []event.Event // not reported yet
	rule        string        // of the last decision, and since when
	ruleSince   time.Time
	// published is the last object reported, made from publishedFrom.
	published     *v1.Pod
	publishedFrom *manifest.Pod
	running       sync.WaitGroup
}

// flight is an action under way.
type flight struct {
	action plan.Action
	since  time.Time
	cancel context.CancelFunc
	// pulling is since when its image is fetched; zero: it is not, or not yet.
	pulling time.Time
}

// post gives an order without ever waiting. Only the router calls it.
func (w *worker) post(o order) {
	select {
	case unread := <-w.orders:
		o = o.after(unread)
	default:
	}
	w.orders <- o
}

// run works until ctx is done and every effect has ended.
func (w *worker) run(ctx context.Context) {
	wake := time.NewTimer(0)
	defer wake.Stop()
	<-wake.C
	for {
		news := false
		select {
		case <-ctx.Done():
			w.land()
			return
		case o := <-w.orders:
			w.obey(o)
			news = true
		case f := <-w.facts:
			news = w.take(f)
		case f := <-w.heard:
			w.fetches(f)
			news = true
		case <-wake.C:
		}
		if at := w.decide(ctx, news); at.IsZero() {
			wake.Stop()
		} else {
			wake.Reset(max(time.Until(at), 0))
		}
	}
}

// land cancels what is under way and waits for it.
func (w *worker) land() {
	for _, fl := range w.flights {
		fl.cancel()
	}
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	for {
		select {
		case <-w.facts:
		case <-done:
			return
		}
	}
}
