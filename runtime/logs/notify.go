package logs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/runtime/inotify"
	"podd/runtime/safepath"
)

// A Notifier wakes readers that follow logs when the logs have changed. The readers share one
// inotify instance, which exists while there are readers. Readers of the same directory share a
// watch. If inotify has reached its limits, readers poll instead. The zero value is ready for use.
// A Notifier is safe for concurrent use.
type Notifier struct {
	// Log receives a message if inotify is unavailable, at most once per logInterval. Nil
	// means slog.Default().
	Log *slog.Logger

	mu          sync.Mutex                        // guards all following fields and the fields of each watchedDir
	newWatcher  func() (*fsnotify.Watcher, error) // creates an inotify instance; nil means fsnotify.NewWatcher
	watcher     *inotify.Watcher                  // nil while no directory is watched
	ended       chan struct{}                     // closed when all goroutines that read events have returned
	dirs        map[inode]*watchedDir
	paths       map[string]*watchedDir // by the path that watcher watches
	readerCount int
	loggedAt    time.Time
}

// logInterval is the minimum interval of messages to Log.
const logInterval = time.Hour

// Maximum numbers of checks per second by all waiting readers together. The more readers there are,
// the less often each one checks.
const (
	maxChecksPerSecond = 100
	maxPollsPerSecond  = 1000
)

// checkInterval returns the maximum time for which a reader waits for an event. After this time the
// reader checks for changes itself. isPolling reports whether the reader gets no events.
func (n *Notifier) checkInterval(isPolling bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	secondsOfAllReaders := time.Duration(n.readerCount) * time.Second
	if isPolling {
		return max(minPollInterval, secondsOfAllReaders/maxPollsPerSecond)
	}
	return max(minRescanInterval, secondsOfAllReaders/maxChecksPerSecond)
}

// addReader increments the number of waiting readers.
func (n *Notifier) addReader() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readerCount++
}

// watchFor makes the notifier wake w for events in dir. It does nothing if inotify is unavailable.
func (n *Notifier) watchFor(w *waiter, dir *safepath.Dir) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.watchLocked(dir.Fd())
	if err != nil {
		n.logLocked(err)
		return
	}
	d.waiters[w], w.dir = true, d
}

// removeReader decrements the number of waiting readers and stops waking w. If w was the last
// waiter, removeReader waits for the goroutine that reads events.
func (n *Notifier) removeReader(w *waiter) {
	n.mu.Lock()
	n.readerCount--
	if d := w.dir; d != nil {
		delete(d.waiters, w)
		if len(d.waiters) == 0 {
			_ = n.watcher.Remove(d.path) // an error means that the directory is no longer watched
			n.unwatchLocked(d)
		}
	}
	n.closeIfIdleLocked()
	ended, idle := n.ended, n.watcher == nil
	n.mu.Unlock()
	if idle && ended != nil {
		<-ended
	}
}

// logLocked logs that inotify is unavailable, at most once per logInterval.
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
