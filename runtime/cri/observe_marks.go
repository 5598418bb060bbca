package cri

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// marks are the pods that may have changed, and when they must be observed. Adding a mark
// never blocks.
type marks struct {
	wake chan struct{} // holds one token when the due time moved closer

	mu     sync.Mutex // guards all following fields
	urgent map[types.NamespacedName]struct{}
	keys   map[types.NamespacedName]struct{} // due at the time at, as whole is
	whole  bool
	at     time.Time // zero: only urgent has marks
}

// dirty is what one pass observes.
type dirty struct {
	whole bool
	keys  map[types.NamespacedName]struct{}
}

// pod marks one pod to be observed within delay; without a delay the mark is urgent.
func (m *marks) pod(key types.NamespacedName, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delay <= 0 {
		m.urgent = withKey(m.urgent, key)
		m.wakeUp()
		return
	}
	m.keys = withKey(m.keys, key)
	m.hastenLocked(delay)
}

func withKey(keys map[types.NamespacedName]struct{}, key types.NamespacedName) map[types.NamespacedName]struct{} {
	if keys == nil {
		keys = map[types.NamespacedName]struct{}{}
	}
	keys[key] = struct{}{}
	return keys
}

// all marks all pods.
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
	m.wakeUp()
}

func (m *marks) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// due returns when the first mark must be observed; false means that there is none.
func (m *marks) due() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.urgent) > 0 {
		return time.Now(), true
	}
	return m.at, !m.at.IsZero()
}

// peek returns all marks and keeps them.
func (m *marks) peek() dirty {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := maps.Clone(m.keys)
	for key := range m.urgent {
		keys = withKey(keys, key)
	}
	return dirty{whole: m.whole, keys: keys}
}

// take returns the marks of the next pass and clears them: every mark, also those not yet
// due, if whole is set, a mark that is not urgent is due or many are urgent; otherwise the
// urgent ones. A few urgent marks in a burst of events would else make every pass list all
// pods. Call take before the first list call, so that later marks cause another pass.
func (m *marks) take(whole bool) dirty {
	m.mu.Lock()
	defer m.mu.Unlock()
	if due := !m.at.IsZero() && !m.at.After(time.Now()); !whole && !due && len(m.urgent) <= fewPods {
		for key := range m.urgent {
			delete(m.keys, key)
		}
		if len(m.keys) == 0 && !m.whole {
			m.at = time.Time{}
		}
		d := dirty{keys: m.urgent}
		m.urgent = nil
		return d
	}
	for key := range m.urgent {
		m.keys = withKey(m.keys, key)
	}
	d := dirty{whole: m.whole, keys: m.keys}
	m.urgent, m.keys, m.whole, m.at = nil, nil, false, time.Time{}
	return d
}
