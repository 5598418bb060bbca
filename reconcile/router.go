package reconcile

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"strings"
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

// Options are what a Router works with. Effects, Log, Refresh and Publish are
// required.
type Options struct {
	Effects  *Effects
	Journals Journals
	Log      *slog.Logger
	// Refresh asks for a new observation of a pod; it must not block.
	Refresh func(types.NamespacedName)
	// Publish is told of every change, by the router's goroutine; it must not
	// block.
	Publish func(Change)
	// SourceKinds has the kind of every configured source, by name.
	SourceKinds map[string]string
	Limits      plan.Limits
	// Kept are the claims whose data is in a directory of podd's; nil: none.
	Kept func() (map[types.NamespacedName]bool, error)
	// Devices are those that pods are admitted by; nil: Limits says.
	Devices Holdings
	// Render is the node as pods see it; its cgroup driver is that of the runtime
	// where the runtime says, its handler's features always are.
	Render render.Node
	Adopt  bool
	// MaxBackoff caps the crash back-off; zero means 5 minutes.
	MaxBackoff time.Duration
	// Beat is called every BeatEvery by the router's own goroutine, to feed a
	// watchdog; zero BeatEvery: never.
	Beat      func()
	BeatEvery time.Duration
	// Shutdown is that of a machine that goes down already; nil: it does not.
	Shutdown []plan.ShutdownGroup
}

// Change is what differs since the last one.
type Change struct {
	Reports []*Report // changed or new
	Gone    []types.NamespacedName
	Set     *manifest.Set // the present one; nil before the first
	// SetChanged says that Set is not that of the Change before.
	SetChanged bool
	Node       runtime.Node
	// Capacity is what the machine has, Allocatable what of it is for pods, and
	// Devices what pods were admitted by last; read-only.
	Capacity, Allocatable render.Resources
	Devices               map[v1.ResourceName]plan.Devices
	// Down says that every pod was asked to end and none is started any more,
	// ShuttingDown that the machine goes down.
	Down, ShuttingDown bool
	// Starting says that a pod of which something is on this machine may be in
	// no report yet: the runtime was not seen, or a worker has not spoken.
	Starting bool
	// Events are what happened since. Quiet says that nothing else is new.
	Events []event.Event
	Quiet  bool
}

// Router hands wanted and seen pods to their workers and owns what spans pods.
// All its state belongs to the goroutine in Run; the other methods may be
// called from anywhere while Run runs.
type Router struct {
	o       Options
	reports chan Report
	asks    chan ask
	ended   chan struct{} // closed when Run returns

	entries map[types.NamespacedName]*entry
	read    *manifest.Set   // the newest one; nil before the first
	known   *manifest.Known // it, by the UIDs that the machine knows
	past    map[types.NamespacedName][]journal
	bound   *manifest.Bound // and with its objects
	set     *manifest.Set   // that of bound
	node    runtime.Node
	render  *render.Node
	devices map[v1.ResourceName]plan.Devices // as they were counted last
	drivers uint64                           // how often those of volumes changed
	seen    bool                             // a whole snapshot came
	started bool                             // and every worker has told what it makes of it
	asOf    time.Time                        // of the newest snapshot taken
	lost    []types.UID                      // directories without a journal
	// lateUntil is until when calls of an earlier life may still have effects.
	lateUntil time.Time
	last      map[types.NamespacedName]*runtime.Pod // as last seen
	// buried has when the last effect of a retired name ended: an observation
	// from before says nothing of the name.
	buried     map[types.NamespacedName]time.Time
	down       bool
	hurry      bool
	shutdown   *shutdown // nil: the machine does not go down
	downed     []chan error
	changed    map[types.NamespacedName]bool
	gone       []types.NamespacedName
	dirty      bool
	claimed    bool          // claims changed since the last orderAll
	events     []event.Event // not published yet
	setChanged bool
	workers    sync.WaitGroup
}

// lateCalls is how long a runtime may go on with a call whose caller died: it
// notices, but under load only seconds later.
const lateCalls = 10 * time.Second

type ask struct {
	do    func() error
	reply chan error
}

// NewRouter returns a router that does nothing until Run.
func NewRouter(o Options) *Router {
	r := &Router{
		o:       o,
		render:  &o.Render,
		reports: make(chan Report),
		asks:    make(chan ask),
		entries: map[types.NamespacedName]*entry{},
		buried:  map[types.NamespacedName]time.Time{},
		ended:   make(chan struct{}),
		changed: map[types.NamespacedName]bool{},
	}
	if o.Shutdown != nil {
		r.shutdown = newShutdown(o.Shutdown)
	}
	return r
}

// Inputs are the streams a Router reads. Sets may be closed, which is the end of
// news; the others are not.
type Inputs struct {
	Sets      <-chan *manifest.Set
	Snapshots <-chan runtime.Snapshot
	Nodes     <-chan runtime.Node
	// Devices has a value when there may be others to be had; nil: never.
	Devices <-chan struct{}
	// Drivers has a value when volumes may be had that could not before; nil: never.
	Drivers <-chan struct{}
}

// Run routes until ctx is done, and returns when every worker has ended. No
// container is stopped by that.
func (r *Router) Run(ctx context.Context, in Inputs) error {
	defer close(r.ended)
	past, lost, err := r.o.Journals.all()
	if err != nil {
		return err
	}
	r.past, r.lost, r.lateUntil = past, lost, time.Now().Add(lateCalls)
	ctx, cancel := context.WithCancel(ctx)
	defer r.workers.Wait()
	defer cancel()
	for key, js := range past {
		if r.shutdown == nil {
			js = resumed(js)
		}
		r.entry(ctx, key, js)
	}
	beat, stop := r.beats()
	defer stop()
	for {
		// A burst of changes is answered and published once, but answered and published.
		for n := 0; (r.dirty || r.claimed) && n < len(r.entries) && r.pending(); n++ {
		}
		if r.claimed {
			r.orderAll()
		}
		r.start()
		r.endNext()
		if r.dirty || len(r.events) > 0 {
			r.publish()
		}
		select {
		case <-ctx.Done():
			return nil
		case s, ok := <-in.Sets:
			if !ok {
				in.Sets = nil
				continue
			}
			r.takeSet(ctx, s)
		case s := <-in.Snapshots:
			r.takeSnapshot(ctx, s)
		case n := <-in.Nodes:
			r.takeNode(n)
		case <-in.Devices:
			r.orderAll()
			r.dirty = true
		case <-in.Drivers:
			r.drivers++
			r.orderAll()
		case rep := <-r.reports:
			r.takeReport(rep)
		case a := <-r.asks:
			a.reply <- a.do()
		case <-r.shutdown.due():
		case <-beat:
			r.o.Beat()
		}
	}
}

func (r *Router) beats() (<-chan time.Time, func()) {
	if r.o.BeatEvery <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(r.o.BeatEvery)
	return t.C, t.Stop
}

// pending takes one report that is already there.
func (r *Router) pending() bool {
	select {
	case rep := <-r.reports:
		r.takeReport(rep)
		return true
	default:
		return false
	}
}

func (r *Router) takeSet(ctx context.Context, s *manifest.Set) {
	r.read = s
	r.bind()
	for key := range r.set.Pods {
		r.entry(ctx, key, nil)
	}
	r.takeLost(ctx)
	r.orderAll()
}

// bind makes of the newest set what is wanted.
func (r *Router) bind() {
	s := r.recognize()
	r.bound = manifest.Bind(s, r.o.Render.Instance, r.kept(s), r.bound)
	r.events = append(r.events, event.Refused(r.set, r.bound.Set, time.Now())...)
	r.set, r.dirty, r.setChanged = r.bound.Set, true, true
}

// kept is looked up for every set anew: claims get their directories meanwhile.
func (r *Router) kept(s *manifest.Set) map[types.NamespacedName]bool {
	if r.o.Kept == nil || !manifest.HasClaims(s) {
		return nil
	}
	kept, err := r.o.Kept()
	if err != nil { // no claim gets another's data by that: a volume prepares with its record
		r.o.Log.Warn("where claims have their data is not known; one that a PersistentVolume fits may wait", "err", err)
	}
	return kept
}

func (r *Router) takeNode(n runtime.Node) {
	var before *runtime.Node
	if r.node.Name != "" || r.node.Message != "" {
		before = &r.node
	}
	r.events = append(r.events, event.NodeChanged(r.o.Render.Name, before, n, time.Now())...)
	r.node, r.dirty = n, true
	driver, images, cdi := cmp.Or(n.CgroupDriver, r.render.CgroupDriver), render.ImageVolumesOf(n), render.CDIOf(n)
	if driver != r.render.CgroupDriver || !maps.Equal(n.Handlers, r.render.Handlers) || images != r.render.Images || cdi != r.render.CDI {
		render := *r.render
		render.CgroupDriver, render.Handlers, render.Images, render.CDI = driver, n.Handlers, images, cdi
		r.render = &render
	}
	r.orderAll()
}

// entry returns the entry of a name, with a worker that runs.
func (r *Router) entry(ctx context.Context, key types.NamespacedName, past []journal) *entry {
	if e, ok := r.entries[key]; ok {
		return e
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{
		key: key, effects: r.o.Effects, journals: r.o.Journals, refresh: r.o.Refresh,
		log:     r.o.Log.With("pod", r.short(key)),
		hostIPs: r.o.Render.HostIPs,
		orders:  make(chan order, 1), facts: make(chan fact), heard: make(chan fetch),
		flights: map[string]flight{}, effectEnd: r.buried[key],
	}
	w.report = func(rep Report) {
		select {
		case r.reports <- rep:
		case <-ctx.Done():
		}
	}
	w.recall(past, r.lateUntil)
	e := &entry{worker: w, cancel: cancel, ended: make(chan struct{}), past: past}
	r.entries[key] = e
	r.workers.Go(func() {
		defer close(e.ended)
		w.run(ctx)
	})
	return e
}

func (r *Router) takeReport(rep Report) {
	e := r.entries[rep.Key]
	if e == nil || e.worker != rep.worker {
		return
	}
	r.events = append(r.events, rep.events...)
	if rep.quiet {
		return
	}
	before := e.report
	first := before == nil || before.seq < e.shown && rep.seq >= e.shown
	if first || !before.says(&rep) {
		r.changed[rep.Key], r.dirty = true, true
	}
	e.report = &rep
	if rep.Decision.Done && e.order.desired == nil && rep.seq == e.order.seq {
		r.retire(rep.Key, e)
		return
	}
	if e.updateHolds(before) || first {
		r.claimed = true
	} else if v := rep.Version; v != nil && v != before.Version && len(v.Spec.Spec.EphemeralContainers) > 0 {
		r.order(rep.Key, e, e.order.verdict) // with what these read
	}
}

// start notes, once, that podd knows what is on this machine.
func (r *Router) start() {
	if r.started || !r.seen || r.set == nil {
		return
	}
	for _, e := range r.entries {
		if !e.told() {
			return
		}
	}
	r.started, r.dirty = true, true
	r.orderAll() // what nobody has any more is free, and what is lacking is
}

// short is the name users gave: without the node's.
func (r *Router) short(key types.NamespacedName) string {
	return key.Namespace + "/" + strings.TrimSuffix(key.Name, "-"+r.o.Render.Name)
}

func (r *Router) publish() {
	c := Change{Set: r.set, SetChanged: r.setChanged, Node: r.node, Capacity: r.render.Capacity, Allocatable: r.render.Allocatable, Devices: r.devices, Gone: r.gone, Down: r.down, ShuttingDown: r.shutdown != nil, Starting: !r.started, Events: r.events, Quiet: !r.dirty}
	for key := range r.changed {
		if e := r.entries[key]; e != nil {
			c.Reports = append(c.Reports, e.report)
		}
	}
	r.changed, r.gone, r.events = map[types.NamespacedName]bool{}, nil, nil
	r.dirty, r.setChanged = false, false
	r.o.Publish(c)
}
