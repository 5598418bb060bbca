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

// ObserverOptions configure an Observer. The zero values except Instance are right for a
// daemon.
type ObserverOptions struct {
	// Instance is the value of runtime.LabelInstance on our sandboxes. If it is "", no
	// sandbox is ours.
	Instance string
	// Adopted contains further values of the label on sandboxes that are ours.
	Adopted []string
	// IncludeUnlabelled includes the details of sandboxes without the label of a podd, such as those
	// of a kubelet. They are still Foreign.
	IncludeUnlabelled bool
	// MinRelistInterval is the interval of relists while events are not reliable: the runtime does not
	// support them, the stream is new, or a relist found a change without an event. Zero
	// means 1 s.
	MinRelistInterval time.Duration
	// MaxRelistInterval is the maximum interval of relists. The interval starts at MinRelistInterval and doubles up to
	// MaxRelistInterval while events arrive and relists find no changes that had no event. Zero means 30 s.
	MaxRelistInterval time.Duration
	// OnRelist is called after every complete relist with the time of its start and its
	// duration; nil disables it. It must not block.
	OnRelist func(asOf time.Time, took time.Duration)
	// Logger logs when the runtime becomes unreachable or reachable. Nil means
	// slog.Default().
	Logger *slog.Logger
}

// ours reports whether a value of runtime.LabelInstance marks sandboxes of ours.
func (o *ObserverOptions) ours(instance string) bool {
	return instance != "" && (instance == o.Instance || slices.Contains(o.Adopted, instance))
}

// An Observer watches the pods of one runtime.
//
//	event reader ──marks──▶ Run: list, query what changed ──emit──▶ Snapshot
//	Refresh ───────marks──▶       ▲ every MinRelistInterval … MaxRelistInterval
//
// The reader only marks pods as dirty and never blocks, because a slow subscriber blocks
// containerd 2.x for all clients. The payload of an event is not used as state, so a lost
// event only delays a change until the next relist.
//
// A container is Exited once its exit code is known, and ExitUnknown before: then its
// status is queried again within 100 ms, and less often the more often that fails. The
// result of a late query is used when it arrives.
//
// A pass queries only what may have changed: two lists, the status of containers with a
// new state in the list, and the addresses of new sandboxes, unless another call of this
// client has returned them. A pod in which nothing changed keeps its pointer.
type Observer struct {
	client *Client
	opts   ObserverOptions
	marks  marks
	stream stream
	health atomic.Pointer[Health]
	settle atomic.Int64 // afterPass of the last whole pass, in ns

	// The following fields belong to Run's goroutine.
	pods     map[types.NamespacedName]*runtime.Pod // as last emitted
	period   time.Duration                         // interval of relists
	relistAt time.Time                             // when the next relist is due
	failed   int                                   // consecutive failed passes
	doubts   map[string]doubt                      // IDs that still need a status query

	sandboxes  *inquiries[runtime.Sandbox]
	containers *inquiries[runtime.Container]
}

// doubt is a sandbox or container after a failed status query.
type doubt struct {
	key     types.NamespacedName
	tries   int       // number of failed queries
	retryAt time.Time // when to query again; zero while a query is in progress
}

// Health is the state of an Observer.
type Health struct {
	// LastRelist is when the newest complete relist was started; zero: none yet.
	LastRelist time.Time
	// Err is why the newest pass failed; nil if it succeeded.
	Err error
	// Events reports that changes cause events; otherwise they are found after at most
	// MinRelistInterval.
	Events bool
}

// NewObserver returns an observer that does nothing until Run.
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
	ob := &Observer{client: c, opts: o, period: o.MinRelistInterval, doubts: map[string]doubt{}}
	ob.sandboxes, ob.containers = newInquiries(c.querySandbox), newInquiries(c.queryContainer)
	ob.marks.wake = make(chan struct{}, 1)
	ob.health.Store(&Health{})
	return ob
}

// Health returns the current state. It is safe for concurrent use.
func (o *Observer) Health() Health { return *o.health.Load() }

// Refresh requests an observation of one pod with an AsOf after this call: at once if it
// is urgent, else as soon as after an event. A burst of pods makes many requests, which
// then share one list of all pods. Refresh does not wait for the observation. It is safe
// for concurrent use, also before Run.
func (o *Observer) Refresh(key types.NamespacedName, urgent bool) {
	if urgent {
		o.marks.pod(key, 0)
		return
	}
	o.marks.pod(key, o.settleTime())
}

// Run observes until ctx is done and returns ctx's error. The first snapshot is Whole.
// While the runtime cannot be reached, nothing is emitted. Run calls emit from one
// goroutine; emit must not block for long. The snapshot and everything in it is shared and
// must not be modified. Run must be called only once.
func (o *Observer) Run(ctx context.Context, emit func(runtime.Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { o.readEvents(ctx) })
	defer func() {
		cancel()
		reader.Wait()
		o.sandboxes.calls.Wait()
		o.containers.calls.Wait()
	}()
	o.relistAt = time.Now()
	for {
		byTimer, err := o.wait(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		o.runPass(ctx, byTimer, emit)
		if err := o.rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
}
