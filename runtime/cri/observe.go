package cri

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// ObserverOptions configure an Observer. A daemon needs to set only Instance.
type ObserverOptions struct {
	// Instance is the value of runtime.LabelInstance on the sandboxes of this podd. If it is
	// "", all sandboxes are Foreign.
	Instance string
	// AdoptedInstances contains other values of runtime.LabelInstance. Sandboxes with these values
	// are treated like those with the value Instance.
	AdoptedInstances []string
	// IncludeUnlabelled makes the observer query the details of sandboxes without
	// runtime.LabelInstance, for example those of a kubelet. These sandboxes are still
	// Foreign.
	IncludeUnlabelled bool
	// MinRelistInterval is the interval of relists while events are not reliable. This is
	// the case if the runtime does not support events, the stream is new, or a relist found
	// a change without an event. Zero means 1 s.
	MinRelistInterval time.Duration
	// MaxRelistInterval is the maximum interval of relists. While events are reliable, the
	// interval doubles after each relist up to this maximum. Zero means 30 s.
	MaxRelistInterval time.Duration
	// OnRelist is called after every complete relist with its start time and duration. It
	// must not block. It may be nil.
	OnRelist func(asOf time.Time, duration time.Duration)
	// OnPodRelist is called after every pass that observed single pods, with the duration of
	// the pass. It must not block. It may be nil.
	OnPodRelist func(duration time.Duration)
	// Logger receives a message when the runtime becomes unreachable or reachable again. Nil
	// means slog.Default().
	Logger *slog.Logger
}

// isOurs reports whether sandboxes with this value of runtime.LabelInstance are not
// Foreign.
func (o *ObserverOptions) isOurs(instance string) bool {
	return instance != "" && (instance == o.Instance || slices.Contains(o.AdoptedInstances, instance))
}

// An Observer watches the pods of one runtime.
//
//	event reader ──marks──▶ Run: list, query what changed ──emit──▶ Snapshot
//	Refresh ───────marks──▶       ▲ every MinRelistInterval … MaxRelistInterval
//
// The event reader only marks pods that may have changed. It never blocks, because a slow
// subscriber blocks containerd 2.x for all clients. The payload of an event is not used as
// state, so a lost event only delays a change until the next relist.
//
// An exited container has the state ExitCodeUnknown until its exit code is known, and then Exited.
// While the code is unknown, the observer repeats the status query, first after 100 ms and then
// with increasing delays. If a query returns after its pass has ended, a later pass uses the
// result.
//
// A pass observes the marked pods, or all pods. It makes two list calls. It queries only the status
// of containers with a changed state in the list, and the status of new sandboxes. It makes
// no query if another call of this client has returned the same data. If nothing changed in a pod,
// the pod keeps its pointer.
type Observer struct {
	client      *Client
	opts        ObserverOptions
	marks       marks
	stream      eventStream
	health      atomic.Pointer[Health]
	settleDelay atomic.Int64 // result of the function settleDelay for the last pass over all pods, in ns

	// Only Run's goroutine uses the following fields.
	pods           map[types.NamespacedName]*runtime.Pod // all pods, as of the newest snapshot
	relistInterval time.Duration                         // present interval of relists
	relistAt       time.Time                             // time at which the next relist is due
	failedPasses   int                                   // number of consecutive failed passes
	failedQueries  map[string]failedQuery                // by ID of the sandbox or container

	sandboxCalls   *statusCalls[runtime.Sandbox]
	foreignCalls   *statusCalls[runtime.Sandbox] // separate, so that late calls for foreign sandboxes do not use up the limit (maxLateCalls) for podd's own sandboxes
	containerCalls *statusCalls[runtime.Container]
}

// A failedQuery is a sandbox or container with a failed status query, which must be repeated.
type failedQuery struct {
	key      types.NamespacedName
	failures int       // number of consecutive failed queries
	retryAt  time.Time // time at which to query again; zero while a query is in progress
}

// Health describes how current the snapshots of an Observer are.
type Health struct {
	// LastRelist is the time at which the newest complete relist began. It is zero before the first
	// one.
	LastRelist time.Time
	// Err is the error of the newest pass, or nil if the pass succeeded.
	Err error
	// HasEvents reports whether the runtime sends events. If it is false, the observer finds
	// changes after at most MinRelistInterval.
	HasEvents bool
}

// NewObserver returns an observer that does nothing until Run is called.
func (c *Client) NewObserver(o ObserverOptions) *Observer {
	if o.MinRelistInterval <= 0 {
		o.MinRelistInterval = time.Second
	}
	if o.MaxRelistInterval <= 0 {
		o.MaxRelistInterval = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	ob := &Observer{client: c, opts: o, relistInterval: o.MinRelistInterval, failedQueries: map[string]failedQuery{}}
	ob.sandboxCalls, ob.foreignCalls, ob.containerCalls = newStatusCalls(c.querySandbox), newStatusCalls(c.querySandbox), newStatusCalls(c.queryContainer)
	ob.marks.wake = make(chan struct{}, 1)
	ob.health.Store(&Health{})
	return ob
}

// Health returns the current state. It is safe for concurrent use.
func (o *Observer) Health() Health { return *o.health.Load() }

// Refresh requests an observation of one pod that begins after this call, and returns at once. If
// urgent is true, the observation begins at once. Otherwise it begins after the same delay as for
// an event, so that many requests in a short time share one list of all pods. Refresh is safe for
// concurrent use, also before Run.
func (o *Observer) Refresh(key types.NamespacedName, urgent bool) {
	if urgent {
		o.marks.markPod(key, 0)
		return
	}
	o.marks.markPod(key, o.nonUrgentDelay())
}

// Run observes the pods until ctx is done and returns ctx.Err(). The first snapshot is complete
// (runtime.Snapshot.IsComplete). While the runtime is unreachable, Run emits nothing. It calls emit
// from one goroutine, and emit must not block for long. The snapshot and everything in it are
// shared and must not be modified. Run must be called only once.
func (o *Observer) Run(ctx context.Context, emit func(runtime.Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { o.readEvents(ctx) })
	defer func() {
		cancel()
		reader.Wait()
		o.sandboxCalls.running.Wait()
		o.foreignCalls.running.Wait()
		o.containerCalls.running.Wait()
	}()
	o.relistAt = time.Now()
	for {
		isRelist, err := o.wait(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		o.runPass(ctx, isRelist, emit)
		if err := o.pauseAfterPass(ctx, time.Since(start)); err != nil {
			return err
		}
	}
}
