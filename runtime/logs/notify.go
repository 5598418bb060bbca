package logs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/runtime/safepath"
)

// A Notifier wakes readers that follow logs. They share one inotify instance, which exists
// while there are readers, and readers of the same directory share a watch. If inotify has
// reached its limits, the readers poll instead. The zero value is ready for use. It is safe
// for concurrent use.
type Notifier struct {
	// Log receives rare messages that inotify is unavailable; nil means slog.Default.
	Log *slog.Logger

	mu       sync.Mutex                        // guards all following fields, and those of watched
	open     func() (*fsnotify.Watcher, error) // nil: fsnotify.NewWatcher
	fs       *fsnotify.Watcher                 // nil: nothing is watched
	ended    chan struct{}                     // closed when the goroutines that read fs and earlier instances have returned
	dirs     map[inode]*watched
	paths    map[string]*watched // by the path in fs
	readers  int
	loggedAt time.Time
}

// logInterval is the minimum interval of messages to Log.
const logInterval = time.Hour

// Each waiting reader checks so rarely that all of them together check at most this often
// per second.
const (
	maxChecksPerSecond = 100
	maxPollsPerSecond  = 1000
)

// checkInterval returns how long a reader waits for an event, or until the next check.
func (n *Notifier) checkInterval(polled bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := time.Duration(n.readers) * time.Second
	if polled {
		return max(poll, all/maxPollsPerSecond)
	}
	return max(rescan, all/maxChecksPerSecond)
}

// enter counts one more reader, until leave is called.
func (n *Notifier) enter() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readers++
}

// join makes events wake w, if inotify is available.
func (n *Notifier) join(w *wake, dir *safepath.Dir) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.watchLocked(dir.Fd())
	if err != nil {
		n.logLocked(err)
		return
	}
	d.wakes[w], w.dir = true, d
}

// leave undoes join. After the last reader it waits for the goroutine that reads events.
func (n *Notifier) leave(w *wake) {
	n.mu.Lock()
	n.readers--
	if d := w.dir; d != nil {
		delete(d.wakes, w)
		if len(d.wakes) == 0 {
			_ = n.fs.Remove(d.path) // fails only if the directory is no longer watched
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

func (n *Notifier) logLocked(err error) {
	if !n.loggedAt.IsZero() && time.Since(n.loggedAt) < logInterval {
		return
	}
	n.loggedAt = time.Now()
	log := n.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn("watching logs with inotify failed; polling followed logs instead", "err", err,
		"remedy", "raise fs.inotify.max_user_instances or max_user_watches")
}
