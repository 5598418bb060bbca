package eviction

import (
	"context"
	"time"

	"podd/reconcile/eviction/pressure"
)

// observeInterval is the maximum interval between observations of the node. A kubelet uses the same
// interval.
const observeInterval = 10 * time.Second

// A Manager observes the node, and publishes its pressure conditions. Its state belongs to the
// goroutine of Run.
type Manager struct {
	o         ManagerOptions
	state     pressure.State
	published *pressure.Conditions // nil before the first observation
}

// ManagerOptions are the options of a Manager. All are required.
type ManagerOptions struct {
	Policy   pressure.Policy
	Observer Observer
	Memory   memoryNotifier
	// Publish is called with the first conditions, and with each change of the conditions. met
	// contains the thresholds that cause the conditions; it may be empty, because a condition remains
	// true for the transition period.
	Publish func(c pressure.Conditions, met []pressure.Met)
}

// An Observer observes the signals of the node.
type Observer interface {
	// Observe returns the present amounts. It must not wait for the runtime, because pods must be
	// evicted even if the runtime does not respond.
	Observe() pressure.Observations
}

// memoryNotifier is the part of *memorywatch.Watcher that a Manager uses.
type memoryNotifier interface {
	Events() <-chan struct{}
	Arm(distance int64)
}

// NewManager returns a Manager that does nothing before Run.
func NewManager(o ManagerOptions) *Manager { return &Manager{o: o} }

// Run observes the node until ctx is done: at intervals, when the kernel reports that memory may be
// short, and when a grace period or transition period ends.
func (m *Manager) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-m.o.Memory.Events():
		}
		timer.Reset(m.check(ctx))
	}
}

// check observes the node once and returns the time until the next check.
func (m *Manager) check(context.Context) time.Duration {
	d := m.observe()
	if d.WakeAt.IsZero() {
		return observeInterval
	}
	return min(observeInterval, max(time.Until(d.WakeAt), 0))
}

// observe observes the node, publishes changed conditions and requests the next notification of the
// kernel.
func (m *Manager) observe() pressure.Decision {
	observed := m.o.Observer.Observe()
	d := pressure.Decide(m.o.Policy, m.state, observed, time.Now())
	m.state = d.State
	m.o.Memory.Arm(m.o.Policy.MemoryDistance(observed))
	if m.published == nil || *m.published != d.Conditions {
		m.published = &d.Conditions
		m.o.Publish(d.Conditions, d.Met)
	}
	return d
}
