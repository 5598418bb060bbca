package cri

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// marks are the pods that something happened to, and when they are to be looked
// at. Marking never waits for anyone.
type marks struct {
	wake chan struct{} // holds one token when the due time moved closer

	mu    sync.Mutex // guards all following fields
	keys  map[types.NamespacedName]struct{}
	whole bool
	at    time.Time // zero: nothing is marked
}

// dirty is what one pass is asked for.
type dirty struct {
	whole bool
	keys  map[types.NamespacedName]struct{}
}

// pod marks one pod to be looked at within delay.
func (m *marks) pod(key types.NamespacedName, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = map[types.NamespacedName]struct{}{}
	}
	m.keys[key] = struct{}{}
	m.hastenLocked(delay)
}

// all marks everything.
func (m *marks) all(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole = true
	m.hastenLocked(delay)
}

func (m *marks) hastenLocked(delay time.Duration) {
	at := time.Now().Add(delay)
	if !m.at.IsZero() && !at.Before(m.at) {
		return
	}
	m.at = at
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// due is when the first mark wants to be served; false when there is none.
func (m *marks) due() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, !m.at.IsZero()
}

// take returns every mark, those not yet due too, and clears them. Call it
// before the first list call: what is marked from then on is looked at again.
func (m *marks) take() dirty {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := dirty{whole: m.whole, keys: m.keys}
	m.keys, m.whole, m.at = nil, false, time.Time{}
	return d
}
