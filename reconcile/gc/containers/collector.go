// Package containers removes dead containers, as the container garbage collection of the kubelet
// does. A Collector removes them if all pods together have more than a maximum, and Finished removes
// them before pods are evicted. Package gc decides which containers a Collector removes.
package containers

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/reconcile/gc"
	"podd/reconcile/gc/gctrace"
	"podd/reconcile/state"
	"podd/runtime"
)

// interval is the interval between rounds of the garbage collection, as in the kubelet.
const interval = time.Minute

// Options are the options of a Collector. All fields are required unless their comment says otherwise.
type Options struct {
	Policy  gc.ContainerPolicy
	Reports func() []*state.Report // returns the current pods
	Runtime Runtime
	// Record records events of the node; nil means that no events are recorded.
	Record func([]event.Event)
	// Tracer creates a span for each round; nil means that rounds are not traced.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// Runtime is the part of *cri.Client that this package uses.
type Runtime interface {
	RemoveContainer(ctx context.Context, id string) error
}

// A Collector removes dead containers.
type Collector struct {
	o         Options
	remover   remover
	hasFailed bool // whether the last round has failed
}

// New returns a Collector. The caller must call Run.
func New(o Options) *Collector { return &Collector{o: o} }

// Run removes dead containers until ctx is done. If the policy has no maximum, Run returns
// immediately.
func (c *Collector) Run(ctx context.Context) error {
	if c.o.Policy.Max < 0 {
		return nil
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			now := time.Now()
			c.report(c.collect(ctx, now), now)
		}
	}
}

// collect removes the dead containers that the policy does not keep. It returns the errors of
// remover.removeAll.
func (c *Collector) collect(ctx context.Context, now time.Time) error {
	return gctrace.Round(ctx, c.o.Tracer, gctrace.Containers, func(ctx context.Context) error {
		return c.remover.removeAll(ctx, c.o.Runtime, c.o.Policy.Excess(deadContainers(c.o.Reports()), now))
	})
}

// report logs the first of consecutive failures. It records an event each time the runtime has not
// responded. As in the kubelet, a container that cannot be removed causes no event.
func (c *Collector) report(err error, now time.Time) {
	if err != nil && !c.hasFailed {
		c.o.Log.Warn("removing dead containers failed; podd tries again every minute", "err", err)
	}
	if isUnresponsive(err) && c.o.Record != nil {
		c.o.Record([]event.Event{event.NewNodeEvent(v1.EventTypeWarning, "ContainerGCFailed", err.Error(), now)})
	}
	c.hasFailed = err != nil
}

// deadContainers returns the dead containers of the pods. It omits containers whose exit code is unknown,
// because podd still queries the exit code. Unlike the kubelet, it also omits containers whose state is
// unknown, because they may still run: the worker of the pod stops them, and then they have exited.
func deadContainers(reports []*state.Report) (containers []gc.DeadContainer) {
	for _, r := range reports {
		for i := range r.Observed {
			if inc := &r.Observed[i]; !inc.Foreign {
				containers = append(containers, deadContainersOf(inc, !r.HasRemovableContainers())...)
			}
		}
	}
	return containers
}

// deadContainersOf returns the dead containers in inc. If isPodActive is set, only superseded containers may
// be removed. Otherwise the sandbox of inc is stopped, and podd starts no container in it any more.
func deadContainersOf(inc *runtime.Incarnation, isPodActive bool) (containers []gc.DeadContainer) {
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if c.State != runtime.Exited && c.State != runtime.Created {
			continue
		}
		containers = append(containers, gc.DeadContainer{
			ID: c.ID, PodUID: inc.UID, Name: c.Name, Attempt: c.Attempt, CreatedAt: c.CreatedAt, IsNeeded: isPodActive && !isSuperseded(c, inc),
		})
	}
	return containers
}

// isSuperseded reports whether podd no longer needs the dead container c in inc. podd needs the newest
// exited container of each name: it shows the container's log and last state, and restarts the container
// after a back-off. It also needs a created container, which it may be about to start, until a later
// attempt was started.
func isSuperseded(c *runtime.Container, inc *runtime.Incarnation) bool {
	return slices.ContainsFunc(inc.Containers, func(other runtime.Container) bool {
		if other.Name != c.Name || other.Attempt <= c.Attempt {
			return false
		}
		if c.State == runtime.Created {
			return other.State != runtime.Created && !other.WasStartInterrupted()
		}
		return other.State == runtime.Exited
	})
}
