package logs

import (
	"context"
	"time"

	"podd/runtime/safepath"
)

const (
	// minRescanInterval is the minimum interval of checks for lost events.
	minRescanInterval = time.Second
	// minPollInterval is the minimum interval of checks without events. There are no events before
	// the log directory exists, and if inotify has reached its limits.
	minPollInterval = 50 * time.Millisecond
	// firstCloseCheckInterval is the first interval of checks whether the log of an exited
	// container is closed. Polling is necessary because no event reports this reliably.
	firstCloseCheckInterval = 10 * time.Millisecond
	// maxCloseCheckInterval is the maximum interval of checks whether the log of an exited
	// container is closed.
	maxCloseCheckInterval = 500 * time.Millisecond
)

// A waiter signals one reader when its log directory may have changed. The signal contains no
// details of the change. Except for the fields that notifier.mu guards, a waiter is not safe for
// concurrent use.
type waiter struct {
	notifier     *Notifier
	isCounted    bool          // whether the notifier counts this reader
	watchTriedAt time.Time     // time of the last attempt to get events
	changed      chan struct{} // receives the signal; capacity 1
	mustRelist   bool          // whether there may be new files; guarded by notifier.mu
	dir          *watchedDir   // nil while no directory is watched; guarded by notifier.mu
}

// wait waits until there may be more to read. exited reports whether hasExited returned true.
// relist reports whether there may be new files. dir and hasExited may be nil.
func (w *waiter) wait(ctx context.Context, dir *safepath.Dir, hasExited func() (exited bool, changed <-chan struct{})) (exited, relist bool, err error) {
	if hasExited == nil {
		hasExited = ExitedWhenClosed(nil)
	}
	exited, changed := hasExited()
	if exited {
		return true, true, nil
	}
	w.register()
	isWatching := w.isWatching()
	// Try to get events at intervals, because inotify may no longer be at its limits.
	if dir != nil && !isWatching && time.Since(w.watchTriedAt) >= w.notifier.checkInterval(false) {
		w.watchTriedAt = time.Now()
		w.notifier.watchFor(w, dir)
		return false, true, nil // dir may have changed before the notifier watched it
	}
	timer := time.NewTimer(w.notifier.checkInterval(!isWatching))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false, ctx.Err()
		case <-changed:
			if exited, changed = hasExited(); exited {
				return true, true, nil
			}
		case <-timer.C:
			return false, true, nil
		case <-w.changed:
			return false, w.takeRelist(), nil
		}
	}
}

// pause waits until the next check whether the log was closed. The interval is a quarter of the
// time that the reader has waited since the exit, within a minimum and a maximum.
func pause(ctx context.Context, waited time.Duration) error {
	timer := time.NewTimer(min(max(waited/4, firstCloseCheckInterval), maxCloseCheckInterval))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// register registers the reader with the notifier, unless it is registered already.
func (w *waiter) register() {
	if w.isCounted {
		return
	}
	w.isCounted, w.changed = true, make(chan struct{}, 1)
	if w.notifier == nil {
		w.notifier = &Notifier{}
	}
	w.notifier.addReader()
}

// isWatching reports whether the reader gets events.
func (w *waiter) isWatching() bool {
	w.notifier.mu.Lock()
	defer w.notifier.mu.Unlock()
	return w.dir != nil
}

// takeRelist reports whether there may be new files, and resets the flag.
func (w *waiter) takeRelist() bool {
	w.notifier.mu.Lock()
	defer w.notifier.mu.Unlock()
	relist := w.mustRelist
	w.mustRelist = false
	return relist
}

func (w *waiter) close() {
	if w.isCounted {
		w.notifier.removeReader(w)
	}
}
