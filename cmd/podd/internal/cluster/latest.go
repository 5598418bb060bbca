package cluster

import "sync"

// latest has the newest of one value, for any number of readers. The zero latest
// has the zero value. Safe for concurrent use; the value is not to be written.
type latest[T any] struct {
	mu      sync.Mutex // guards all following fields
	value   T
	changed chan struct{} // closed by the next set; nil: nobody asked
}

// get returns the value, and a channel that is closed once there is another.
func (l *latest[T]) get() (T, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.value, l.changed
}

func (l *latest[T]) set(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value = v
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
