package runonce

import (
	"sync"

	"podd/reconcile"
)

// A changeQueue is an unbounded queue of changes. put never blocks, and take returns and removes
// all changes. newChangeQueue creates a changeQueue.
type changeQueue struct {
	wake chan struct{} // capacity 1; receives a value when the queue is not empty

	mu      sync.Mutex // guards all following fields
	changes []reconcile.Change
}

func newChangeQueue() *changeQueue { return &changeQueue{wake: make(chan struct{}, 1)} }

func (m *changeQueue) put(c reconcile.Change) {
	m.mu.Lock()
	m.changes = append(m.changes, c)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *changeQueue) take() []reconcile.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.changes
	m.changes = nil
	return all
}
