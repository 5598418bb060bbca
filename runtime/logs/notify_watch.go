package logs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"podd/runtime/inotify"
)

// A watchedDir is a directory that the Notifier watches for readers. It stays open, so that the
// kernel does not reuse its inode.
type watchedDir struct {
	inode   inode
	dir     *os.File
	path    string
	waiters map[*waiter]bool
}

type inode struct{ dev, ino uint64 }

// watchLocked watches the directory with the descriptor fd, even if its path now leads to another
// directory.
func (n *Notifier) watchLocked(fd int) (*watchedDir, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	id := inode{uint64(st.Dev), st.Ino}
	if d := n.dirs[id]; d != nil {
		return d, nil
	}
	if err := n.startLocked(); err != nil {
		return nil, err
	}
	ownFD, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		path := fmt.Sprintf("/proc/self/fd/%d", ownFD)
		d := &watchedDir{inode: id, dir: os.NewFile(uintptr(ownFD), path), path: path, waiters: map[*waiter]bool{}}
		if err = n.watcher.Add(path); err == nil {
			n.dirs[id], n.paths[path] = d, d
			return d, nil
		}
		d.dir.Close()
	}
	n.closeIfIdleLocked()
	return nil, err
}

// startLocked creates the inotify instance, unless it exists already.
func (n *Notifier) startLocked() error {
	if n.watcher != nil {
		return nil
	}
	fs, err := inotify.New(n.newWatcher)
	if err != nil {
		return err
	}
	previousEnded, ended := n.ended, make(chan struct{})
	n.watcher, n.ended = fs, ended
	n.dirs, n.paths = map[inode]*watchedDir{}, map[string]*watchedDir{}
	go func() { // when the last reader is removed, removeReader waits for this goroutine
		defer close(ended)
		n.readEvents(fs)
		if previousEnded != nil {
			<-previousEnded
		}
	}()
	return nil
}

// readEvents handles the events of fs until fs is closed.
func (n *Notifier) readEvents(fs *inotify.Watcher) {
	for {
		select {
		case e, ok := <-fs.Events:
			if !ok {
				return
			}
			n.handleEvent(fs, e)
		case _, ok := <-fs.Errors: // the kernel dropped events
			if !ok {
				return
			}
			n.wakeAll()
		}
	}
}

// handleEvent wakes the readers of the event's directory.
func (n *Notifier) handleEvent(watcher *inotify.Watcher, e fsnotify.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if watcher != n.watcher { // the event comes from an earlier instance, which may have used the same path for another directory
		return
	}
	d := n.paths[e.Name]
	// fsnotify stops watching a directory that is renamed, so the watcher must add the
	// directory again.
	if d != nil && e.Has(fsnotify.Rename) && watcher.Add(d.path) != nil {
		for w := range d.waiters {
			w.dir = nil
		}
		n.unwatchLocked(d)
	}
	if d == nil {
		d = n.paths[filepath.Dir(e.Name)]
	}
	if d != nil {
		d.wakeLocked(!e.Has(fsnotify.Write))
	}
}

// wakeAll wakes all readers, because events were lost.
func (n *Notifier) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.dirs {
		d.wakeLocked(true)
	}
}

// wakeLocked wakes the readers of d. relist reports whether there may be new files.
func (d *watchedDir) wakeLocked(relist bool) {
	for w := range d.waiters {
		w.mustRelist = w.mustRelist || relist
		select {
		case w.changed <- struct{}{}:
		default: // the reader has not yet received the previous value, which is sufficient
		}
	}
}

// unwatchLocked removes a directory that is no longer watched from n.
func (n *Notifier) unwatchLocked(d *watchedDir) {
	delete(n.dirs, d.inode)
	delete(n.paths, d.path)
	d.dir.Close()
}

// closeIfIdleLocked closes the inotify instance if no directory is watched.
func (n *Notifier) closeIfIdleLocked() {
	if n.watcher != nil && len(n.dirs) == 0 {
		n.watcher.Close()
		n.watcher = nil
	}
}
