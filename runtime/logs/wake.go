package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/runtime/beneath"
)

const (
	// rescan is how long a lost event may go unnoticed.
	rescan = time.Second
	// poll is how often to look where there are no events: before the log's
	// directory exists, and when inotify has reached its limits.
	poll = 50 * time.Millisecond
	// closing is how often to ask whether a log that has come to its end is
	// closed: no event tells of that for sure.
	closing = 10 * time.Millisecond
	// seldom is how often at last, when something holds it open.
	seldom = 500 * time.Millisecond
)

// wake tells when a container's log directory may have changed. An event says
// no more than that: what happened is looked up.
type wake struct {
	watcher *fsnotify.Watcher // nil: none
	tried   bool
}

// wait returns when there may be more to read; look says that there may be new
// files, done that done is closed. dir may be nil.
func (w *wake) wait(ctx context.Context, dir *beneath.Dir, done <-chan struct{}) (finishing, look bool, err error) {
	select {
	case <-done:
		return true, true, nil
	default:
	}
	if dir != nil && !w.tried {
		w.start(dir)
		return false, true, nil // it may have changed before that
	}
	var events chan fsnotify.Event
	var errs chan error
	after := poll
	if w.watcher != nil {
		events, errs, after = w.watcher.Events, w.watcher.Errors, rescan
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, false, ctx.Err()
	case <-done:
		return true, true, nil
	case <-timer.C:
		return false, true, nil
	case <-errs: // events were lost
		return false, true, nil
	case e := <-events:
		return false, w.others(!e.Has(fsnotify.Write)), nil
	}
}

// pause waits a moment, the longer the log's end has been waited for.
func pause(ctx context.Context, waited time.Duration) error {
	timer := time.NewTimer(min(max(waited/4, closing), seldom))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// others takes the events that wait already: one look serves them all.
func (w *wake) others(look bool) bool {
	for {
		select {
		case e := <-w.watcher.Events:
			look = look || !e.Has(fsnotify.Write)
		case <-w.watcher.Errors:
			look = true
		default:
			return look
		}
	}
}

func (w *wake) start(dir *beneath.Dir) {
	w.tried = true
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	// The directory that is open, whatever its path leads to by now.
	if err := watcher.Add(fmt.Sprintf("/proc/self/fd/%d", dir.Fd())); err != nil {
		watcher.Close()
		return
	}
	w.watcher = watcher
}

func (w *wake) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}
