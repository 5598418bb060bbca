package eviction

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/state"
)

const (
	// observeInterval is the maximum interval between observations of the node. A kubelet uses the same
	// interval.
	observeInterval = 10 * time.Second
	// minObserveInterval is the interval if pods could reach the threshold of a disk within a second.
	minObserveInterval = time.Second
	// minEventInterval is the minimum interval between two observations because of notifications about
	// memory. The kernel has several kinds of notifications, and each kind may arrive once per second.
	minEventInterval = time.Second
)

// A Manager observes the node and publishes its pressure conditions. If the node is short of a
// resource, it first reclaims what no pod needs, and then evicts one pod after the other. Its state
// belongs to the goroutine of Run.
type Manager struct {
	o                   ManagerOptions
	state               pressure.State
	publishedConditions *pressure.Conditions // nil before the first observation
	isKnown             bool                 // whether any observation so far was complete
	awaitedPod          evictedPod           // the pod for which the Manager waits
	stuckPods           map[podID]bool       // evicted pods that did not stop in time and whose processes still run
	// retryAt contains the earliest time of the next reclaim for each threshold whose last reclaim was
	// not sufficient and evicted no pod. It does not apply if a pod can be evicted.
	retryAt   map[pressure.Threshold]time.Time
	hasLogged bool // whether the log contains that no pod can be evicted
	// cleanupDeadline is the time after which the Manager does not wait for finished pods during the current
	// shortage; zero if it has not waited yet.
	cleanupDeadline time.Time
	startDeadline   time.Time // the time after which the Manager acts even if pods are unknown; zero before the first shortage
}

// ManagerOptions are the options of a Manager. All except OnEvict are required.
type ManagerOptions struct {
	Policy   pressure.Policy
	Observer Observer
	Memory   memoryNotifier
	// Publish is called with the first conditions, with each change of the conditions, and after the
	// first complete observation.
	Publish func(context.Context, Published)
	Record  func([]event.Event)
	Reports func() []*state.Report // returns the current pods
	// IsStarting reports whether Reports may omit pods that exist on the node.
	IsStarting func() bool
	Router     evictor
	Usage      UsageReader
	// To make space on a file system, Containers removes dead containers, Images removes unused images
	// that have reached the minimum age, YoungImages removes all unused images, and Logs removes the
	// logs of finished pods.
	Containers, Images, YoungImages, Logs Reclaimer
	// OnEvict is called for each threshold that causes the eviction of a pod. age is the time
	// since the amounts of the resources were observed. It may be nil.
	OnEvict func(signal pressure.Signal, age time.Duration)
	Log     *slog.Logger
}

// Published contains the pressure conditions of the node.
type Published struct {
	Conditions pressure.Conditions
	// Met contains the thresholds that cause the conditions. It may be empty, because a condition
	// remains true for the transition period.
	Met []pressure.MetThreshold
	// IsKnown reports whether an observation was complete since Run began. Before that, the conditions
	// omit the file systems of images and writable layers.
	IsKnown bool
}

// An Observer observes the signals of the node.
type Observer interface {
	// Observe returns the present amounts. It must not wait for the runtime, because pods must be
	// evicted even if the runtime does not respond.
	Observe() pressure.Observations
	// Completed returns a channel that is closed as soon as Observe can return complete observations.
	Completed() <-chan struct{}
}

// memoryNotifier is the part of *memorywatch.Watcher that a Manager uses.
type memoryNotifier interface {
	Events() <-chan struct{}
	Arm(node, pods int64)
}

// A UsageReader measures the resource usage of pods.
type UsageReader interface {
	// PodUsage returns the usage of a resource by pod UID. It omits pods that could not be measured.
	PodUsage(ctx context.Context, resource v1.ResourceName) (map[types.UID]*pressure.Usage, error)
}

// A Reclaimer makes space on the file systems of the node without stopping a pod.
type Reclaimer interface {
	Reclaim(ctx context.Context) error
}

// NewManager returns a Manager that does nothing before Run.
func NewManager(o ManagerOptions) *Manager {
	return &Manager{o: o, stuckPods: map[podID]bool{}, retryAt: map[pressure.Threshold]time.Time{}}
}

// Run observes the node until ctx is done: at intervals, when the kernel reports that memory may be
// short, and when a grace period or transition period ends.
func (m *Manager) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	completed, memoryEvents := m.o.Observer.Completed(), m.o.Memory.Events()
	var resumeEvents <-chan time.Time // nil while memoryEvents is received
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-completed:
			completed = nil
		case <-timer.C:
		case <-memoryEvents:
			memoryEvents, resumeEvents = nil, time.After(minEventInterval)
		case <-resumeEvents: // an event of the meantime is still in the channel
			memoryEvents, resumeEvents = m.o.Memory.Events(), nil
			continue
		}
		timer.Reset(m.check(ctx))
	}
}

// An observation contains what a Manager has observed, and when it began to observe.
type observation struct {
	pressure.Observations
	at time.Time
}

// check observes the node once, acts on the most urgent threshold that is due, and returns the time
// until the next check.
func (m *Manager) check(ctx context.Context) time.Duration {
	start := time.Now()
	d, amounts := m.observe(ctx)
	reports := m.o.Reports()
	m.updateEvicted(reports, time.Now())
	wait := m.interval(amounts)
	if len(d.Due) > 0 {
		wait = min(wait, m.act(ctx, d, observation{amounts, start}, reports))
	} else {
		m.hasLogged, m.cleanupDeadline = false, time.Time{}
	}
	if d.WakeAt.IsZero() {
		return wait
	}
	return min(wait, max(time.Until(d.WakeAt), 0))
}

// interval returns the interval after an observation of these amounts. It is shorter than
// observeInterval only if pods could reach the threshold of a disk in that time, because the kernel
// does not report a lack of disk space.
func (m *Manager) interval(amounts pressure.Observations) time.Duration {
	left, isLimited := m.o.Policy.TimeToDiskPressure(amounts)
	if !isLimited {
		return observeInterval
	}
	return min(max(left, minObserveInterval), observeInterval)
}

// observe observes the node, publishes changed conditions and requests the next notification of the
// kernel.
func (m *Manager) observe(ctx context.Context) (pressure.Decision, pressure.Observations) {
	amounts := m.o.Observer.Observe()
	d := pressure.Decide(m.o.Policy, m.state, amounts, time.Now())
	m.state = d.State
	m.o.Memory.Arm(m.o.Policy.MemoryDistance(amounts, pressure.MemoryAvailable), m.o.Policy.MemoryDistance(amounts, pressure.AllocatableMemoryAvailable))
	isKnown := m.isKnown || amounts.IsComplete
	if m.publishedConditions == nil || *m.publishedConditions != d.Conditions || m.isKnown != isKnown {
		m.publishedConditions, m.isKnown = &d.Conditions, isKnown
		m.o.Publish(ctx, Published{Conditions: d.Conditions, Met: d.Met, IsKnown: isKnown})
	}
	return d, amounts
}
