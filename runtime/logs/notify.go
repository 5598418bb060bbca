package logs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/runtime/beneath"
)

// Notifier wakes those who follow logs. All of them share one inotify instance,
// which is there while somebody follows, and those of one directory a watch.
// Where inotify has reached its limits they look now and then instead. Zero is
// ready for use, by any number of readings at a time.
type Notifier struct {
	// Log is told, seldom, that inotify cannot be had; nil for slog.Default.
	Log *slog.Logger

	mu      sync.Mutex                        // guards all following fields, and those of watched
	open    func() (*fsnotify.Watcher, error) // nil for fsnotify's
	fs      *fsnotify.Watcher                 // nil: nothing is watched
	ended   chan struct{}                     // closed when what reads fs, or read those before it, has returned
	dirs    map[inode]*watched
	paths   map[string]*watched // as fs names them
	readers int
	told    time.Time
}

// tellAgain is how long after it was told Log is not: whoever follows can have
// inotify come and go.
const tellAgain = time.Hour

// Of all who wait, each looks by itself so seldom that together they do so at
// most so often a second.
const (
	looks = 100
	polls = 1000
)

// after is how long a follower waits for an event, or for the next look.
func (n *Notifier) after(polled bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := time.Duration(n.readers) * time.Second
	if polled {
		return max(poll, all/polls)
	}
	return max(rescan, all/looks)
}

// enter counts one more who waits, until it leaves.
func (n *Notifier) enter() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readers++
}

// join has w woken from now on, unless that cannot be.
func (n *Notifier) join(w *wake, dir *beneath.Dir) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.watchLocked(dir.Fd())
	if err != nil {
		n.tellLocked(err)
		return
	}
	d.wakes[w], w.dir = true, d
}

// leave ends what join began. When nobody is left it waits for the goroutine that
// reads events.
func (n *Notifier) leave(w *wake) {
	n.mu.Lock()
	n.readers--
	if d := w.dir; d != nil {
		delete(d.wakes, w)
		if len(d.wakes) == 0 {
			_ = n.fs.Remove(d.path) // fails only for what is watched no more
			n.forgetLocked(d)
		}
	}
	n.idleLocked()
	ended, idle := n.ended, n.fs == nil
	n.mu.Unlock()
	if idle && ended != nil {
		<-ended
	}
}

func (n *Notifier) tellLocked(err error) {
	if !n.told.IsZero() && time.Since(n.told) < tellAgain {
		return
	}
	n.told = time.Now()
	log := n.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn("logs that are followed are looked at now and then: there is no inotify", "err", err,
		"fix", "raise fs.inotify.max_user_instances or max_user_watches")
}
