package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/admission"
	"podd/reconcile/device/allocation"
	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/journal"
	"podd/reconcile/node"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// Options configure a Router. Effects, Log, RequestObservation and Publish are required.
type Options struct {
	Effects  *effect.Runner
	Journals journal.Store
	Log      *slog.Logger
	// RequestObservation requests a new observation of a pod. If urgent is true, the runtime is
	// queried at once. RequestObservation must not block.
	RequestObservation func(key types.NamespacedName, urgent bool)
	// Publish receives every change, on the router's goroutine. It must not block.
	Publish func(Change)
	// SourceKinds maps the name of every configured source to its kind.
	SourceKinds map[string]string
	Limits      admission.Limits
	// AwaitPressure delays the start of pods until SetPressure is called with isKnown. The delay is
	// limited, and it does not apply to critical pods.
	AwaitPressure bool
	// StoredClaims returns the PersistentVolumeClaims with data in a directory of podd; nil
	// means that there are none.
	StoredClaims func() (map[types.NamespacedName]bool, error)
	// Devices manages the devices of the node. The numbers of available devices replace
	// Limits.Devices. If Devices is nil, pods are admitted by Limits.Devices.
	Devices DeviceManager
	// RenderNode contains the facts about the node from which sandboxes and containers are
	// rendered. If the runtime reports its cgroup driver or the features of its handlers, the
	// reported values replace the values in RenderNode.
	RenderNode       render.Node
	AdoptKubeletPods bool
	// RunningInstances returns the IDs of the instances that other processes run, with the PIDs of
	// the processes. If RunningInstances is nil, pods of other instances are not checked. If it
	// returns an error, the Router assumes that all instances are running.
	RunningInstances func() (pids map[string]int, err error)
	// EarlierNodeNames are earlier names of the node. A running pod whose name ends with one of them
	// must stop before the pod from the same manifest starts under the current name of the node.
	EarlierNodeNames []string
	// MaxBackoff limits the crash back-off; zero means 5 minutes.
	MaxBackoff time.Duration
	// Tracer creates the spans of syncs and actions; nil means that there are none.
	Tracer trace.Tracer
	// DeadContainers decides how many exited containers remain in the runtime.
	DeadContainers plan.DeadContainerPolicy
	// NotifyWatchdog is called every WatchdogInterval on the router's goroutine, to notify a
	// watchdog. If WatchdogInterval is zero, NotifyWatchdog is never called.
	NotifyWatchdog   func()
	WatchdogInterval time.Duration
	// ShutdownGroups contains the groups of a node shutdown that is in progress when Run begins;
	// nil means that there is none.
	ShutdownGroups []plan.ShutdownGroup
}

// A Change contains the state that the Router publishes. Reports, Removed and Events contain only
// what is new since the previous Change. All other fields contain the complete current state.
type Change struct {
	Reports []*state.Report // new and changed reports
	// Removed contains the last report of each pod that was removed. Earlier reports of the pod may
	// not have been published. If a new pod has the same name, the name is also in Reports; apply
	// Removed first.
	Removed []*state.Report
	Set     *manifest.Set // the set in effect; nil before the first set
	// SetChanged reports whether Set differs from the Set of the previous Change.
	SetChanged bool
	Node       runtime.Node
	// Capacity is the capacity of the node, and Allocatable is the part that pods may use. Devices
	// are the numbers of devices that the last admission used. All three are read-only.
	Capacity, Allocatable render.Resources
	Devices               map[v1.ResourceName]allocation.Count
	// Addresses are the newest addresses of the node.
	Addresses node.Addresses
	// IsStoppingAll reports whether Router.StopAll was called: every pod is being stopped, and no
	// pod is started any more.
	IsStoppingAll bool
	// ShuttingDown reports whether a node shutdown is in progress.
	ShuttingDown bool
	// Starting reports whether Reports may omit pods that exist on the node. This is possible until
	// the runtime was observed and all workers have reported.
	Starting bool
	// Problems are the problems of pod directories. They are read-only.
	Problems []manifest.Problem
	// Events are the new events. EventsOnly reports whether nothing else has changed.
	Events     []event.Event
	EventsOnly bool
}

// A Router passes desired and observed pods to their workers, and owns the state that
// concerns several pods. All its state belongs to the goroutine in Run. The other methods
// may be called from any goroutine while Run runs.
type Router struct {
	o        Options
	updates  chan workerUpdate
	requests chan request
	runDone  chan struct{} // closed when Run returns

	entries     map[types.NamespacedName]*workerEntry
	desired     *desiredSet                             // nil before the first set
	pastRecords map[types.NamespacedName][]state.Record // journals, as read when Run began
	node        runtime.Node
	renderNode  *render.Node
	devices     map[v1.ResourceName]allocation.Count // as of the last admission
	// unhealthyDevices is nil if there is no device plugin manager. It is replaced when the health
	// of a device changes.
	unhealthyDevices   *allocation.UnhealthyDevices
	driverChanges      uint64         // number of values received from Inputs.Drivers
	addresses          node.Addresses // newest addresses of the node
	hasFullSnapshot    bool           // whether a snapshot of all pods was received
	allWorkersReported bool           // whether markAllWorkersReported has found that every worker has reported on its first observation
	snapshotTime       time.Time      // time of the newest snapshot
	// isPressureKnown reports whether Options.AwaitPressure no longer delays pods. pressureTimeout
	// receives a value when the maximum delay has passed.
	isPressureKnown bool
	pressureTimeout <-chan time.Time
	orphans         orphanState
	instances       instanceChecks
	// unreadableJournals contains the error of every journal that could not be read when Run began.
	unreadableJournals map[types.UID]string
	// lateCallsUntil is the time until which a call of an earlier podd to the runtime may still
	// take effect.
	lateCallsUntil time.Time
	observed       map[types.NamespacedName]*runtime.Pod // the newest observation of each name
	// retiredAt contains the end of the last effect of each retired name. An earlier
	// observation of that name is ignored.
	retiredAt           map[types.NamespacedName]time.Time
	shutdown            *shutdown // nil if the node does not shut down
	stopAll             stopAllState
	unpublished         unpublishedChanges
	reservationsChanged bool      // whether reservations have changed since the last call of postOrders
	nextOrdersAt        time.Time // earliest time of the next postOrders for changed reservations; see orderPauseFactor
	workers             sync.WaitGroup
}

// stopAllState contains the call of StopAll; zero if there is none.
type stopAllState struct {
	reason  string       // argument of StopAll; "" if StopAll was not called
	force   bool         // whether pods that are being stopped get no grace period
	waiters []chan error // channels on which calls of StopAll wait for their results
}

// unpublishedChanges contains the changes since the last call of Options.Publish.
type unpublishedChanges struct {
	pods     map[types.NamespacedName]bool // pods with new reports
	removed  []*state.Report               // last reports of removed pods
	hasState bool                          // whether there is a change other than events
	hasSet   bool                          // whether the set in effect has changed
	events   []event.Event                 // new events
}

// A request is a function that the router's goroutine calls for another goroutine.
type request struct {
	do    func() error
	reply chan error
}

// NewRouter returns a router that does nothing until Run is called.
func NewRouter(o Options) *Router {
	r := &Router{
		o:           o,
		renderNode:  &o.RenderNode,
		updates:     make(chan workerUpdate),
		requests:    make(chan request),
		entries:     map[types.NamespacedName]*workerEntry{},
		retiredAt:   map[types.NamespacedName]time.Time{},
		orphans:     orphanState{waiters: map[types.NamespacedName]chan error{}},
		runDone:     make(chan struct{}),
		unpublished: unpublishedChanges{pods: map[types.NamespacedName]bool{}},
	}
	if o.ShutdownGroups != nil {
		r.shutdown = newShutdown(o.ShutdownGroups)
	}
	return r
}

// Inputs are the channels that a Router receives from. Only Sets may be closed. In that case the
// last set remains in effect.
type Inputs struct {
	Sets      <-chan *manifest.Set
	Snapshots <-chan runtime.Snapshot
	Nodes     <-chan runtime.Node
	// Devices receives a value when the available devices may have changed; nil means never.
	Devices <-chan struct{}
	// Drivers receives a value when volumes that could not be prepared before may have become
	// available; nil means never.
	Drivers <-chan struct{}
	// Addresses receives the addresses of the node whenever they change; nil means never.
	Addresses <-chan node.Addresses
}

// Run passes the inputs to the workers until ctx is done, and returns nil when every worker has
// ended. Run stops no container. It returns an error only if the journals cannot be read.
func (r *Router) Run(ctx context.Context, in Inputs) error {
	defer close(r.runDone)
	pastRecords, orphans, err := r.o.Journals.ReadAll()
	if err != nil {
		return err
	}
	r.pastRecords, r.orphans.dirs, r.lateCallsUntil = pastRecords, orphans, time.Now().Add(state.LateCallTimeout)
	r.unreadableJournals = describeUnreadable(r.o.Journals, orphans)
	ctx, cancel := context.WithCancel(ctx)
	defer r.workers.Wait()
	defer cancel()
	for key, js := range pastRecords {
		if r.shutdown == nil {
			js = withoutResumable(js)
		}
		r.ensureEntry(ctx, key, js)
	}
	r.reportOrphans()
	watchdog, stop := r.newWatchdogTicker()
	defer stop()
	for {
		// The loop receives the reports of a burst of changes, so that orders and reports
		// are sent once for all of them. The number of iterations is limited, so that a
		// busy node still publishes.
		for n := 0; (r.unpublished.hasState || r.reservationsChanged) && n < len(r.entries) && r.receivePending(); n++ {
		}
		r.postOrdersIfDue()
		r.removeRequestedOrphans(ctx)
		r.markAllWorkersReported()
		r.terminateDueGroups()
		r.postOrdersIfDue() // terminateDueGroups may have shortened the grace period of a pod, which requires a new order
		if r.unpublished.hasState || len(r.unpublished.events) > 0 {
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
			r.applySet(ctx, s)
		case s := <-in.Snapshots:
			r.applySnapshot(ctx, s)
		case n := <-in.Nodes:
			r.applyNode(n)
		case a := <-in.Addresses:
			r.applyAddresses(a)
		case <-in.Devices:
			r.postOrders()
			r.unpublished.hasState = true
		case <-in.Drivers:
			r.driverChanges++
			r.postOrders()
		case u := <-r.updates:
			r.applyUpdate(u)
		case a := <-r.requests:
			a.reply <- a.do()
		case <-r.ordersDueChannel():
		case <-r.pressureTimeout:
			r.endPressureWait()
		case <-r.shutdown.dueChannel():
		case <-watchdog:
			r.o.NotifyWatchdog()
		}
	}
}

// newWatchdogTicker returns a channel that receives a value whenever NotifyWatchdog must be called,
// and a function that stops the underlying ticker. The channel is nil if WatchdogInterval is not
// positive.
func (r *Router) newWatchdogTicker() (<-chan time.Time, func()) {
	if r.o.WatchdogInterval <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(r.o.WatchdogInterval)
	return t.C, t.Stop
}

// receivePending applies an update that a worker is waiting to send. It returns false if
// there is none.
func (r *Router) receivePending() bool {
	select {
	case u := <-r.updates:
		r.applyUpdate(u)
		return true
	default:
		return false
	}
}

func (r *Router) applySet(ctx context.Context, s *manifest.Set) {
	r.resolve(s)
	for key := range r.desired.Set.Pods {
		r.ensureEntry(ctx, key, nil)
	}
	r.handleOrphans(ctx)
	r.postOrders()
}

// A desiredSet contains the newest manifest.Set received from the sources, and the sets derived from it.
// It is immutable.
type desiredSet struct {
	received   *manifest.Set           // as received from the sources
	recognized *manifest.RecognizedSet // received, but with the UIDs that the pods already have on this node
	// ResolvedSet contains the pods in recognized and the objects that they refer to. The field
	// Set of ResolvedSet is the set in effect.
	*refs.ResolvedSet
}

// manifestSet returns the set in effect; nil if d is nil.
func (d *desiredSet) manifestSet() *manifest.Set {
	if d == nil {
		return nil
	}
	return d.Set
}

// resolve derives the set in effect from received and stores it in r.desired.
func (r *Router) resolve(received *manifest.Set) {
	oldSet := r.desired
	if oldSet == nil {
		oldSet = &desiredSet{}
	}
	recognized := r.recognize(received, oldSet.recognized)
	resolved := refs.ResolveSet(recognized.Set, r.o.RenderNode.InstanceID, r.storedClaims(recognized.Set), oldSet.ResolvedSet)
	r.unpublished.events = append(r.unpublished.events, event.ForProblems(r.desired.manifestSet(), resolved.Set, time.Now())...)
	r.desired, r.unpublished.hasState, r.unpublished.hasSet = &desiredSet{received, recognized, resolved}, true, true
}

// storedClaims returns the PersistentVolumeClaims with data in a directory of podd. resolve
// calls it for every set, because directories of claims may be created between two sets.
func (r *Router) storedClaims(s *manifest.Set) map[types.NamespacedName]bool {
	if r.o.StoredClaims == nil || !refs.HasClaims(s) {
		return nil
	}
	claims, err := r.o.StoredClaims()
	if err != nil { // not fatal, because the effect that prepares a volume also reads the record of the claim
		r.o.Log.Warn("failed to list the PersistentVolumeClaims that have data; pods with such claims may wait until all PersistentVolumes have been read", "err", err)
	}
	return claims
}

func (r *Router) applyNode(n runtime.Node) {
	var oldNode *runtime.Node
	if r.node.Name != "" || r.node.Message != "" {
		oldNode = &r.node
	}
	r.unpublished.events = append(r.unpublished.events, event.ForNodeChange(r.o.RenderNode.Name, oldNode, n, time.Now())...)
	r.node, r.unpublished.hasState = n, true
	driver, images, cdi := cmp.Or(n.CgroupDriver, r.renderNode.CgroupDriver), render.SupportedImageVolumes(n), render.SupportsCDI(n)
	if driver != r.renderNode.CgroupDriver || !maps.Equal(n.Handlers, r.renderNode.Handlers) || images != r.renderNode.ImageVolumeSupport || cdi != r.renderNode.SupportsCDI {
		renderNode := *r.renderNode
		renderNode.CgroupDriver, renderNode.Handlers, renderNode.ImageVolumeSupport, renderNode.SupportsCDI = driver, n.Handlers, images, cdi
		r.renderNode = &renderNode
	}
	r.postOrders()
}

// applyAddresses stores the addresses of the node, and posts new orders if the addresses changed.
func (r *Router) applyAddresses(a node.Addresses) {
	r.addresses, r.unpublished.hasState = a, true
	if ips := a.Strings(); !slices.Equal(ips, r.renderNode.HostIPs) {
		renderNode := *r.renderNode
		renderNode.HostIPs = ips
		r.renderNode = &renderNode
		r.postOrders()
	}
}

// ensureEntry adds an entry for a name and starts its worker, if there is no entry. pastRecords
// contains the journals of the name that were read when Run began.
func (r *Router) ensureEntry(ctx context.Context, key types.NamespacedName, pastRecords []state.Record) {
	if _, ok := r.entries[key]; ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{
		key: key, effects: r.o.Effects, journals: r.o.Journals, requestObservation: r.o.RequestObservation,
		messages: make(chan *workerMessage, 1), results: make(chan *actionResult), pullStarts: make(chan *pullStart),
		actions: map[string]*runningAction{},
		state:   state.New(state.InitialFacts{Key: key, PastRecords: pastRecords, LateCallsUntil: r.lateCallsUntil, UnreadableJournals: r.unreadableJournals, Barrier: r.retiredAt[key]}),
	}
	w.log = slog.New(redactHandler{r.o.Log.Handler(), func(text string) string { return w.state.Redact(text) }}).With("pod", r.shortName(key))
	w.trace = syncTracer{tracer: r.o.Tracer, key: key, redact: func(text string) string { return w.state.Redact(text) }}
	w.send = func(u workerUpdate) {
		select {
		case r.updates <- u:
		case <-ctx.Done():
		}
	}
	e := &workerEntry{worker: w, cancel: cancel, workerDone: make(chan struct{}), pastRecords: pastRecords}
	r.entries[key] = e
	r.workers.Go(func() {
		defer close(e.workerDone)
		w.run(ctx)
	})
}

// applyUpdate applies the update of a worker.
func (r *Router) applyUpdate(u workerUpdate) {
	e := r.entries[u.key]
	if e == nil || e.worker != u.worker {
		return
	}
	r.unpublished.events = append(r.unpublished.events, u.events...)
	if u.report == nil {
		return
	}
	oldReport, hadReported := e.report, e.hasReported()
	e.report, e.reportSeq = u.report, u.seq
	isFirst := oldReport == nil || !hadReported && e.hasReported()
	if isFirst || !oldReport.Equal(u.report) {
		r.unpublished.pods[u.key], r.unpublished.hasState = true, true
	}
	if r.stopAll.reason != "" {
		defer r.endStopAllCalls()
	}
	d := &u.report.Decision
	if d.NeedsUser {
		r.endRemoval(u.key, errors.New(d.Why))
	}
	if d.FullyRemoved && e.memory.Order.Desired == nil && u.seq == e.seq {
		r.retire(u.key, e)
		return
	}
	memory, hasChanged := e.nameFacts(u.key, r.observed[u.key]).ApplyReport(oldReport)
	e.memory = memory
	v := u.report.Version
	// New ephemeral containers may refer to objects that the order does not contain yet, so they
	// require a new order.
	if hasChanged || isFirst || v != nil && v != oldReport.Version && len(v.Object.Spec.EphemeralContainers) > 0 {
		r.reservationsChanged = true
	}
}

// markAllWorkersReported sets r.allWorkersReported and posts new orders if the sources were read,
// the runtime was observed and every worker has reported on its first observation. Later calls do
// nothing.
func (r *Router) markAllWorkersReported() {
	if r.allWorkersReported || !r.hasFullSnapshot || r.desired == nil {
		return
	}
	for _, e := range r.entries {
		if !e.hasReported() {
			return
		}
	}
	r.allWorkersReported, r.unpublished.hasState = true, true
	r.postOrders() // from now on, reservations that no worker has reported are free, and objects that were not found count as missing
}

// shortName returns the name of a pod as in its manifest, without the suffix with the name of the
// node.
func (r *Router) shortName(key types.NamespacedName) string {
	return key.Namespace + "/" + strings.TrimSuffix(key.Name, "-"+r.o.RenderNode.Name)
}

// publish calls Publish with everything that changed since the previous call.
func (r *Router) publish() {
	c := Change{Set: r.desired.manifestSet(), SetChanged: r.unpublished.hasSet, Node: r.node, Capacity: r.renderNode.Capacity, Allocatable: r.renderNode.Allocatable, Devices: r.devices, Addresses: r.addresses, Removed: r.unpublished.removed, IsStoppingAll: r.stopAll.reason != "", ShuttingDown: r.shutdown != nil, Starting: !r.allWorkersReported, Problems: r.orphans.problems, Events: r.unpublished.events, EventsOnly: !r.unpublished.hasState}
	for key := range r.unpublished.pods {
		if e := r.entries[key]; e != nil {
			c.Reports = append(c.Reports, e.report)
		}
	}
	r.unpublished = unpublishedChanges{pods: map[types.NamespacedName]bool{}}
	r.o.Publish(c)
}
