package runonce

import (
	"sync"

	"podd/reconcile"
)

// A changeQueue is an unbounded queue of changes. It must be created with newChangeQueue. It is
// safe for concurrent use.
type changeQueue struct {
	wake chan struct{} // capacity 1; receives a value when the queue is not empty

	mu      sync.Mutex // guards all following fields
	changes []reconcile.Change
}

func newChangeQueue() *changeQueue { return &changeQueue{wake: make(chan struct{}, 1)} }

// put adds a change and never blocks.
func (m *changeQueue) put(c reconcile.Change) {
	m.mu.Lock()
	m.changes = append(m.changes, c)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take removes all changes and returns them.
func (m *changeQueue) take() []reconcile.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	changes := m.changes
	m.changes = nil
	return changes
}
