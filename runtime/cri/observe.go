package cri

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// ObserverOptions say what to look at and how often. The zero value but for
// Instance is what a daemon wants.
type ObserverOptions struct {
	// Instance is the value of runtime.LabelInstance on our sandboxes; "" is that
	// of nobody, and nothing is ours.
	Instance string
	// Nobodys has sandboxes looked into that have no podd's label, too, as a kubelet's,
	// which are Foreign all the same.
	Nobodys bool
	// Fast is the time between relists while events cannot be relied on: none
	// are served, the stream is new, or a relist found what none announced.
	// Zero is 1 s.
	Fast time.Duration
	// Slow is what Fast doubles up to while events are heard and relists find
	// nothing new. Zero is 30 s.
	Slow time.Duration
	// Looked is told of every complete relist: when it was asked for, and how
	// long it took; nil: nobody is. It must not block.
	Looked func(asOf time.Time, took time.Duration)
	// Logger is told when the runtime is lost and found. Nil: slog.Default().
	Logger *slog.Logger
}

// Observer watches the pods of one runtime.
//
//	event reader ──marks──▶ Run: list, ask for what changed ──emit──▶ Snapshot
//	Refresh ───────marks──▶       ▲ every Fast … Slow
//
// The reader only marks pods dirty and never waits: containerd 2.x stalls for
// everyone when a subscriber reads slowly. What an event says is never believed,
// only that something happened; so a lost one costs time until the next relist
// and nothing else.
//
// A pass asks for no more than what may have changed: two lists, the status of
// containers whose state in the list is new, the addresses of new sandboxes, but
// for what the runtime told somebody since. A pod in which nothing changed keeps
// its pointer.
type Observer struct {
	client *Client
	opts   ObserverOptions
	marks  marks
	stream stream
	health atomic.Pointer[Health]

	// The following fields belong to Run's goroutine.
	pods     map[types.NamespacedName]*runtime.Pod // as last emitted
	period   time.Duration                         // between relists
	relistAt time.Time                             // when the next one is due
	failed   int                                   // passes that failed in a row
	unsure   map[string]struct{}                   // ids whose status is still wanted
	askAt    time.Time                             // when to ask about them again
	puzzled  int                                   // times that asking left something unsure
}

// Health is how well an Observer sees.
type Health struct {
	// LastRelist is when the newest complete relist was asked for; zero: none yet.
	LastRelist time.Time
	// Err is why the newest pass failed, nil when it did not.
	Err error
	// Events says that changes are announced; otherwise they take up to Fast.
	Events bool
}

// NewObserver returns an observer that does nothing until Run.
func (c *Client) NewObserver(o ObserverOptions) *Observer {
	if o.Fast <= 0 {
		o.Fast = time.Second
	}
	if o.Slow <= 0 {
		o.Slow = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	ob := &Observer{client: c, opts: o, period: o.Fast, unsure: map[string]struct{}{}}
	ob.marks.wake = make(chan struct{}, 1)
	ob.health.Store(&Health{})
	return ob
}

// Health may be called at any time by anyone.
func (o *Observer) Health() Health { return *o.health.Load() }

// Refresh asks for an observation of one pod whose AsOf lies after this call.
// It never waits; several calls become one observation. Any goroutine may call
// it, before Run too.
func (o *Observer) Refresh(key types.NamespacedName) { o.marks.pod(key, 0) }

// Run observes until ctx ends and returns ctx's error. The first snapshot is
// Whole; while the runtime cannot be reached nothing is emitted, since nothing
// is known. emit is called by one goroutine and must not keep it for long; the
// snapshot and all in it are shared and must not be written. Call Run once.
func (o *Observer) Run(ctx context.Context, emit func(runtime.Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { o.readEvents(ctx) })
	defer reader.Wait()
	defer cancel()
	o.relistAt = time.Now()
	for {
		byTimer, err := o.wait(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		o.turn(ctx, byTimer, emit)
		if err := o.rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
}
