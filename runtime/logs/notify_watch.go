package logs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// watched is a directory for which readers wait. It stays open, so that its inode and path
// are not reused.
type watched struct {
	inode inode
	dir   *os.File
	path  string
	wakes map[*wake]bool
}

type inode struct{ dev, ino uint64 }

// watchLocked watches the directory that is open as fd, even if its path leads to another
// one now.
func (n *Notifier) watchLocked(fd int) (*watched, error) {
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
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		path := fmt.Sprintf("/proc/self/fd/%d", own)
		d := &watched{inode: id, dir: os.NewFile(uintptr(own), path), path: path, wakes: map[*wake]bool{}}
		if err = n.fs.Add(path); err == nil {
			n.dirs[id], n.paths[path] = d, d
			return d, nil
		}
		d.dir.Close()
	}
	n.idleLocked()
	return nil, err
}

func (n *Notifier) startLocked() error {
	if n.fs != nil {
		return nil
	}
	open := n.open
	if open == nil {
		open = fsnotify.NewWatcher
	}
	fs, err := open()
	if err != nil {
		return err
	}
	earlier, ended := n.ended, make(chan struct{})
	n.fs, n.ended = fs, ended
	n.dirs, n.paths = map[inode]*watched{}, map[string]*watched{}
	go func() { // leave waits for it
		defer close(ended)
		n.read(fs)
		if earlier != nil {
			<-earlier
		}
	}()
	return nil
}

// read handles the events of fs until it is closed.
func (n *Notifier) read(fs *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-fs.Events:
			if !ok {
				return
			}
			n.event(fs, e)
		case _, ok := <-fs.Errors: // events were lost
			if !ok {
				return
			}
			n.all()
		}
	}
}

// event wakes the readers of a directory. The kind of the event is not used.
func (n *Notifier) event(fs *fsnotify.Watcher, e fsnotify.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if fs != n.fs { // fs was closed, and its paths may be those of other directories now
		return
	}
	d := n.paths[e.Name]
	if d != nil && e.Has(fsnotify.Rename) && fs.Add(d.path) != nil { // fs no longer watches a renamed directory
		for w := range d.wakes {
			w.dir = nil
		}
		n.forgetLocked(d)
	}
	if d == nil {
		d = n.paths[filepath.Dir(e.Name)]
	}
	if d != nil {
		d.wakeLocked(!e.Has(fsnotify.Write))
	}
}

func (n *Notifier) all() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.dirs {
		d.wakeLocked(true)
	}
}

func (d *watched) wakeLocked(relist bool) {
	for w := range d.wakes {
		w.relist = w.relist || relist
		select {
		case w.changed <- struct{}{}:
		default: // it has not consumed the last one
		}
	}
}

func (n *Notifier) forgetLocked(d *watched) {
	delete(n.dirs, d.inode)
	delete(n.paths, d.path)
	d.dir.Close()
}

// idleLocked closes the inotify instance if nothing is watched.
func (n *Notifier) idleLocked() {
	if n.fs != nil && len(n.dirs) == 0 {
		n.fs.Close()
		n.fs = nil
	}
}
