// Package inotify creates fsnotify watchers that cannot be blocked by their own errors.
package inotify

import "github.com/fsnotify/fsnotify"

// A Watcher is a fsnotify.Watcher whose errors need not be received.
//
// A fsnotify.Watcher sends an error while it holds its lock, for example after a watched directory
// was renamed and removed. A goroutine that calls Add or Remove at this time waits for the lock, and
// if it is also the one that receives the errors, both wait forever.
type Watcher struct {
	*fsnotify.Watcher
	// Errors contains the oldest error that was not received yet; later errors are dropped. The channel is
	// closed after the Watcher was closed.
	Errors <-chan error
}

// New returns a Watcher. open creates the fsnotify.Watcher; nil means fsnotify.NewWatcher.
func New(open func() (*fsnotify.Watcher, error)) (*Watcher, error) {
	if open == nil {
		open = fsnotify.NewWatcher
	}
	w, err := open()
	if err != nil {
		return nil, err
	}
	errs := make(chan error, 1)
	go func() {
		defer close(errs)
		for err := range w.Errors {
			select {
			case errs <- err:
			default:
			}
		}
	}()
	return &Watcher{w, errs}, nil
}
