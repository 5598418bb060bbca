package once

import (
	"sync"

	"podd/reconcile"
)

// mail holds changes until they are taken; putting never waits. The zero value
// is not ready, see newMail.
type mail struct {
	wake chan struct{} // holds one token while there is something

	mu      sync.Mutex // guards all following fields
	changes []reconcile.Change
}

func newMail() *mail { return &mail{wake: make(chan struct{}, 1)} }

func (m *mail) put(c reconcile.Change) {
	m.mu.Lock()
	m.changes = append(m.changes, c)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mail) take() []reconcile.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.changes
	m.changes = nil
	return all
}
