package logs

import (
	"context"
	"time"

	"podd/runtime/beneath"
)

const (
	// rescan is how long a lost event may go unnoticed, at least.
	rescan = time.Second
	// poll is how often to look where there are no events, at most: before the
	// log's directory exists, and when inotify has reached its limits.
	poll = 50 * time.Millisecond
	// closing is how often to ask whether a log that has come to its end is
	// closed: no event tells of that for sure.
	closing = 10 * time.Millisecond
	// seldom is how often at last, when something holds it open.
	seldom = 500 * time.Millisecond
)

// wake tells one reader when a container's log directory may have changed. An
// event says no more than that: what happened is looked up. For one goroutine,
// but for what of.mu guards.
type wake struct {
	of      *Notifier
	begun   bool      // it is counted
	tried   time.Time // when it tried to join last
	changed chan struct{}
	look    bool     // of.mu guards it: there may be new files
	dir     *watched // of.mu guards it; nil: none is watched
}

// wait returns when there may be more to read; look says that there may be new
// files, finishing that ended, which may be nil, says so. dir may be nil.
func (w *wake) wait(ctx context.Context, dir *beneath.Dir, ended func() (bool, <-chan struct{})) (finishing, look bool, err error) {
	if ended == nil {
		ended = Closed(nil)
	}
	over, changed := ended()
	if over {
		return true, true, nil
	}
	w.begin()
	joined := w.joined()
	// What kept it from joining may be over: files that are open come and go.
	if dir != nil && !joined && time.Since(w.tried) >= w.of.after(false) {
		w.tried = time.Now()
		w.of.join(w, dir)
		return false, true, nil // it may have changed before that
	}
	timer := time.NewTimer(w.of.after(!joined))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false, ctx.Err()
		case <-changed:
			if over, changed = ended(); over {
				return true, true, nil
			}
		case <-timer.C:
			return false, true, nil
		case <-w.changed:
			return false, w.looks(), nil
		}
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

func (w *wake) begin() {
	if w.begun {
		return
	}
	w.begun, w.changed = true, make(chan struct{}, 1)
	if w.of == nil {
		w.of = &Notifier{}
	}
	w.of.enter()
}

func (w *wake) joined() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return w.dir != nil
}

// looks tells, once, whether there may be new files.
func (w *wake) looks() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	look := w.look
	w.look = false
	return look
}

func (w *wake) close() {
	if w.begun {
		w.of.leave(w)
	}
}
