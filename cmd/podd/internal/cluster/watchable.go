package cluster

import "sync"

// A watchable is a value that any number of readers can wait for. The zero watchable has
// the zero value. It is safe for concurrent use; readers must not modify the value.
type watchable[T any] struct {
	mu      sync.Mutex // guards all following fields
	value   T
	changed chan struct{} // closed by the next set; nil until requested
}

// get returns the value, and a channel that is closed when it changes.
func (l *watchable[T]) get() (T, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.value, l.changed
}

func (l *watchable[T]) set(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value = v
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
