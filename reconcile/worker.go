package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/clock"
	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// order is a message from the router to a worker. It always has everything that the router
// wants of the worker, so that a newer order can replace an unread one.
type order struct {
	seq     uint64
	desired *manifest.Pod
	// supply has the objects of desired. earlier is the version that the worker had in
	// force, if it differs, and earlierSupply has its objects.
	supply        *refs.Resolved
	earlier       *manifest.Pod
	earlierSupply *refs.Resolved

	certain       bool
	verdict       plan.Verdict
	node          plan.Node
	runtimeName   string
	render        *render.Node
	userIDs       uint32        // see Router.userIDs
	leaving       *manifest.Pod // the pod of this name that its source is deleting; nil if there is none
	evict         *plan.Eviction
	deletion      *plan.Delete // kept until it is replaced or has ended
	restart       []string     // containers to restart once; "" means all
	additions     []addition
	forceStop     bool // see plan.Input
	driverChanges uint64
	reread        *reread
	observed      bool // pod and asOf are an observation
	stale         bool // the observation is older than the first order for the pod
	pod           *runtime.Pod
	asOf          time.Time
}

// after returns o with what an unread order has in addition.
func (o order) after(unread order) order {
	o.restart = append(slices.Clone(unread.restart), o.restart...)
	o.additions = append(slices.Clone(unread.additions), o.additions...)
	if o.evict == nil {
		o.evict = unread.evict
	}
	if o.reread == nil {
		o.reread = unread.reread
	}
	if !o.observed && unread.observed {
		o.observed, o.pod, o.asOf = true, unread.pod, unread.asOf
	}
	o.stale = o.stale || unread.stale
	return o
}

// worker manages the pod of one name. All fields below unconfirmed belong to the goroutine
// in run.
type worker struct {
	key      types.NamespacedName
	effects  *effect.Runner
	journals Journals
	refresh  func(key types.NamespacedName, urgent bool)
	report   func(Report)
	log      *slog.Logger

	orders     chan order // capacity 1, see post
	results    chan effect.Result
	pullStarts chan pullStart // from effects in progress
	// unconfirmed is set when an effect ended that no observation has confirmed yet. Then
	// the router passes on the next observation even if the pod did not change.
	unconfirmed atomic.Bool

	in               plan.Input
	withoutEphemeral *manifest.Pod // in.Desired as the router sent it, without the ephemeral containers that podd added
	seq              uint64
	order            order // the newest
	// startTime is the start time in the pod's status, by the wall clock of that moment.
	// History.StartTime is the same moment, for waits.
	startTime time.Time
	supply    *refs.Resolved
	// formerSupply is the previous supply, because containers that are being stopped still
	// have its Secrets; nil if there was none.
	formerSupply *refs.Resolved
	nextSupply   *refs.Resolved
	runtimeName  string
	render       *render.Node
	userIDs      uint32
	clock        clock.Reading // the host was not suspended since this reading
	flights      map[string]flight
	givenUp      []givenUp
	effectEnd    time.Time // end of the newest observable effect: the barrier
	hasObserved  bool      // the runtime was observed at least once
	exitsLost    bool      // since the last decision, see recordLost
	past         map[types.UID]journal
	unreadable   map[types.UID]error       // why a journal that is not replaced yet cannot be read
	unwritten    map[types.UID]failedWrite // journals of past that are not on disk
	finishing    *plan.Finished            // the end of the pod that waits for the journal; nil if there is none
	writing      *slowWrite                // the write in progress that takes too long; nil if there is none
	logged       logState
	reported     plan.Decision // the last decision reported
	events       []event.Event // not reported yet
	rule         plan.RuleID   // rule of the last decision
	ruleSince    time.Time     // when rule began to match
	// replaced is the version that was in force before Desired, while the runtime lists
	// incarnations of another version: errors about these may quote its private values.
	replaced *manifest.Pod
	// published is the last object reported. It was made from publishedFrom.
	published     *v1.Pod
	publishedFrom *manifest.Pod
	running       sync.WaitGroup
}

// flight is an action in progress.
type flight struct {
	action plan.Action
	since  time.Time
	cancel context.CancelFunc
	permit effect.Permit // of plan.StartContainer
	uid    types.UID     // UID of the version that it is for; "" if there is none
	// pulling is when the pull of its image began; zero if it has not.
	pulling time.Time
}

// post sends an order without blocking. Only the router calls it.
func (w *worker) post(o order) {
	select {
	case unread := <-w.orders:
		o = o.after(unread)
	default:
	}
	w.orders <- o
}

// run applies orders and results until ctx is done and every effect has ended.
func (w *worker) run(ctx context.Context) {
	wake := time.NewTimer(0)
	defer wake.Stop()
	<-wake.C
	for {
		news := false
		select {
		case <-ctx.Done():
			w.awaitActions()
			return
		case o := <-w.orders:
			w.applyOrder(o)
			news = true
		case f := <-w.results:
			news = w.handleResult(f)
		case f := <-w.pullStarts:
			w.applyPullStart(f)
			news = true
		case err := <-w.writing.ended():
			w.endWrite(err)
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

// awaitActions cancels the actions in progress and waits for them. It waits only a moment
// for a disk that does not respond.
func (w *worker) awaitActions() {
	defer w.finishWrites()
	for _, fl := range w.flights {
		fl.cancel()
	}
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	for {
		select {
		case <-w.results:
		case <-done:
			return
		}
	}
}
