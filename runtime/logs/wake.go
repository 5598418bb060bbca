package logs

import (
	"context"
	"time"

	"podd/runtime/safepath"
)

const (
	// rescan is the minimum interval of checks for lost events.
	rescan = time.Second
	// poll is the minimum interval of checks without events: before the log's directory
	// exists, and if inotify has reached its limits.
	poll = 50 * time.Millisecond
	// closing is the initial interval of checks whether a complete log is closed, because
	// no event reports that reliably.
	closing = 10 * time.Millisecond
	// closingMax is the maximum interval of these checks.
	closingMax = 500 * time.Millisecond
)

// wake signals one reader when a container's log directory may have changed. The payload of
// events is not used. It is not safe for concurrent use, except for the fields that of.mu
// guards.
type wake struct {
	of          *Notifier
	counted     bool      // it is counted in of
	joinTriedAt time.Time // when it last tried to join
	changed     chan struct{}
	relist      bool     // of.mu guards it: there may be new files
	dir         *watched // of.mu guards it; nil: not watched
}

// wait returns when there may be more to read. relist reports that there may be new files,
// finishing that ended, which may be nil, returned true. dir may be nil.
func (w *wake) wait(ctx context.Context, dir *safepath.Dir, ended func() (bool, <-chan struct{})) (finishing, relist bool, err error) {
	if ended == nil {
		ended = Closed(nil)
	}
	over, changed := ended()
	if over {
		return true, true, nil
	}
	w.begin()
	joined := w.joined()
	// The limit that prevented the join may no longer be reached.
	if dir != nil && !joined && time.Since(w.joinTriedAt) >= w.of.checkInterval(false) {
		w.joinTriedAt = time.Now()
		w.of.join(w, dir)
		return false, true, nil // it may have changed before that
	}
	timer := time.NewTimer(w.of.checkInterval(!joined))
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
			return false, w.takeRelist(), nil
		}
	}
}

// pause waits for a moment, which gets longer the longer the end was waited for.
func pause(ctx context.Context, waited time.Duration) error {
	timer := time.NewTimer(min(max(waited/4, closing), closingMax))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (w *wake) begin() {
	if w.counted {
		return
	}
	w.counted, w.changed = true, make(chan struct{}, 1)
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

// takeRelist reports whether there may be new files, and resets that.
func (w *wake) takeRelist() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	relist := w.relist
	w.relist = false
	return relist
}

func (w *wake) close() {
	if w.counted {
		w.of.leave(w)
	}
}
