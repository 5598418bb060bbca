package cri

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// marks contains the pods that may have changed, and when they must be observed. Adding a
// mark never blocks.
type marks struct {
	wake chan struct{} // receives a value when dueAt becomes earlier; capacity 1

	mu      sync.Mutex                        // guards all following fields
	urgent  map[types.NamespacedName]struct{} // pods to observe at once
	keys    map[types.NamespacedName]struct{} // pods to observe at dueAt; pods in urgent are observed at once
	allPods bool
	dueAt   time.Time // zero if keys is empty and allPods is false
}

// markedPods are the pods that one pass observes: all pods if allPods is true, otherwise those in keys.
type markedPods struct {
	allPods bool
	keys    map[types.NamespacedName]struct{}
}

// markPod marks one pod to be observed within delay. If delay is zero, the mark is urgent.
func (m *marks) markPod(key types.NamespacedName, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delay <= 0 {
		m.urgent = addKey(m.urgent, key)
		m.wakeUp()
		return
	}
	m.keys = addKey(m.keys, key)
	m.advanceDueLocked(delay)
}

// addKey adds a key to keys, which may be nil, and returns keys.
func addKey(keys map[types.NamespacedName]struct{}, key types.NamespacedName) map[types.NamespacedName]struct{} {
	if keys == nil {
		keys = map[types.NamespacedName]struct{}{}
	}
	keys[key] = struct{}{}
	return keys
}

// markAll marks all pods to be observed within delay.
func (m *marks) markAll(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allPods = true
	m.advanceDueLocked(delay)
}

// advanceDueLocked sets dueAt to the current time plus delay, unless dueAt is earlier. m.mu must be
// locked.
func (m *marks) advanceDueLocked(delay time.Duration) {
	at := time.Now().Add(delay)
	if !m.dueAt.IsZero() && !at.Before(m.dueAt) {
		return
	}
	m.dueAt = at
	m.wakeUp()
}

// wakeUp makes the observer call nextObservation again. It never blocks.
func (m *marks) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// nextObservation returns the time at which the first marked pod must be observed. ok is false if
// no pod is marked.
func (m *marks) nextObservation() (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.urgent) > 0 {
		return time.Now(), true
	}
	return m.dueAt, !m.dueAt.IsZero()
}

// peek returns all marks without clearing them.
func (m *marks) peek() markedPods {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := maps.Clone(m.keys)
	for key := range m.urgent {
		keys = addKey(keys, key)
	}
	return markedPods{allPods: m.allPods, keys: keys}
}

// take returns the marks for the next pass and clears them. It returns all marks in three cases:
// the pass observes all pods (allPods is true), a mark that is not urgent is due, or many marks are
// urgent. Otherwise it returns only the urgent marks, because a few urgent marks in a burst of
// events must not make every pass list all pods.
//
// take must be called before the first list call, so that a mark during the pass causes
// another pass.
func (m *marks) take(allPods bool) markedPods {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isDue := !m.dueAt.IsZero() && !m.dueAt.After(time.Now()); !allPods && !isDue && len(m.urgent) <= maxPodsListedSingly {
		for key := range m.urgent {
			delete(m.keys, key)
		}
		if len(m.keys) == 0 && !m.allPods {
			m.dueAt = time.Time{}
		}
		marksToReturn := markedPods{keys: m.urgent}
		m.urgent = nil
		return marksToReturn
	}
	for key := range m.urgent {
		m.keys = addKey(m.keys, key)
	}
	marksToReturn := markedPods{allPods: m.allPods, keys: m.keys}
	m.urgent, m.keys, m.allPods, m.dueAt = nil, nil, false, time.Time{}
	return marksToReturn
}
