// Package watchable contains a value that notifies its readers of changes.
package watchable

import "sync"

// A Value contains a value of type T and notifies its readers of changes. The zero Value contains the
// zero value of T. It is safe for concurrent use. Readers must not modify the value.
type Value[T any] struct{ v untyped }

// Get returns the value, and a channel that the next call of Set or Update closes. Until then, Get returns
// the same channel.
func (w *Value[T]) Get() (value T, changed <-chan struct{}) {
	v, changed := w.v.get()
	value, _ = v.(T) // v is nil before the first call of Set or Update
	return value, changed
}

// Set stores a value and closes the channel that Get has returned.
func (w *Value[T]) Set(v T) {
	w.v.update(func(any) any { return v })
}

// Update replaces the value with the result of f and closes the channel that Get has returned. f must not
// modify its argument.
func (w *Value[T]) Update(f func(T) T) {
	w.v.update(func(v any) any {
		old, _ := v.(T)
		return f(old)
	})
}

// untyped implements Value for all types, because the code of a generic type is in the binary once for
// each T.
type untyped struct {
	_       [0]func()     // without it, the binary would contain a function that compares two Values for each T
	mu      sync.Mutex    // guards all following fields
	value   any           // a T, or nil
	changed chan struct{} // closed by the next call of update; nil until get is called
}

// get implements Value.Get.
func (w *untyped) get() (value any, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.value, w.changed
}

// update implements Value.Update.
func (w *untyped) update(f func(any) any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = f(w.value)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
