package cluster

import "sync"

// A watchable is a value that notifies its readers of changes. The zero watchable contains the
// zero value. It is safe for concurrent use. Readers must not modify the value.
type watchable[T any] struct {
	mu      sync.Mutex // guards all following fields
	value   T
	changed chan struct{} // closed by the next call of set or update; nil until get is called
}

// get returns the value, and a channel that the next call of set or update closes.
func (w *watchable[T]) get() (value T, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.value, w.changed
}

// set stores a value and closes the channel that get has returned.
func (w *watchable[T]) set(v T) {
	w.update(func(T) T { return v })
}

// update replaces the value with the result of f and closes the channel that get has returned. f must not
// modify its argument.
func (w *watchable[T]) update(f func(T) T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = f(w.value)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
