package eviction

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/eviction/pressure"
)

// runUnlessMemoryDue runs an action because of signal, and observes the node until the action
// returns, because the action may wait for the runtime or a disk. If a threshold of memory becomes
// due and signal is not about memory, runUnlessMemoryDue cancels the action and returns false.
func (m *Manager) runUnlessMemoryDue(ctx context.Context, signal pressure.Signal, action func(context.Context)) bool {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); action(ctx) }()
	defer func() { cancel(); <-done }()
	ticker := time.NewTicker(evictionCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ticker.C:
		case <-m.o.Memory.Events():
		}
		d, _ := m.observe(ctx)
		if signal.Resource() != v1.ResourceMemory && len(d.Due) > 0 && d.Due[0].Signal.Resource() == v1.ResourceMemory {
			return false
		}
	}
}
