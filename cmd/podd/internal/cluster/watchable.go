package cluster

import "sync"

// A watchable is a value with notification of changes. The zero watchable contains the zero
// value. It is safe for concurrent use; readers must not modify the value.
type watchable[T any] struct {
	mu      sync.Mutex // guards all following fields
	value   T
	changed chan struct{} // closed by the next set; nil until requested
}

// get returns the value, and a channel that the next set closes.
func (w *watchable[T]) get() (T, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.value, w.changed
}

// set stores a value and notifies readers.
func (w *watchable[T]) set(v T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = v
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
