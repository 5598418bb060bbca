// Package dirwatch reports events when a directory changes. Events can be lost and contain no
// state, so the caller must read the directories again after each event. If inotify has reached
// a limit, the caller must poll instead. Each call of Watch tries inotify again.
package dirwatch

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"podd/runtime/inotify"
)

// A Watcher watches directories. The zero value is ready for use. A Watcher must be used by
// one goroutine only.
type Watcher struct {
	// New creates the inotify instance. If New is nil, fsnotify.NewWatcher is used.
	New func() (*fsnotify.Watcher, error)

	inotify *inotify.Watcher    // nil if there is no inotify instance
	dirs    map[string]identity // watched directories by path
}

// identity distinguishes directories that had the same path at different times.
type identity struct{ dev, ino uint64 }

// Watch replaces the set of watched directories. It keeps the watch of a directory that is
// already watched, unless a different directory is at its path now. added reports whether Watch
// has started to watch a directory. Earlier changes in that directory caused no events, so the
// caller must read the directory again. A directory that does not exist is not an error. After
// an error the caller must poll and call Watch again.
func (w *Watcher) Watch(dirs []string) (added bool, err error) {
	if w.inotify == nil {
		instance, err := inotify.New(w.New)
		if err != nil {
			return false, explainLimit(err)
		}
		w.inotify, w.dirs = instance, map[string]identity{}
	}
	for path := range w.dirs {
		if !slices.Contains(dirs, path) {
			w.unwatch(path)
		}
	}
	for _, path := range dirs {
		isNew, err := w.add(path)
		if err != nil {
			return added, explainLimit(err)
		}
		added = added || isNew
	}
	return added, nil
}

// add starts to watch a directory. added is false if the directory was watched before, or if there
// is no directory at path.
func (w *Watcher) add(path string) (added bool, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		w.unwatch(path)
		return false, nil
	}
	id := identity{uint64(st.Dev), st.Ino}
	if w.dirs[path] == id {
		return false, nil
	}
	w.unwatch(path)
	switch err := w.inotify.Add(path); {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	w.dirs[path] = id
	return true, nil
}

// unwatch stops watching a directory. The kernel may have deleted the watch already.
func (w *Watcher) unwatch(path string) {
	if _, ok := w.dirs[path]; ok {
		_ = w.inotify.Remove(path) // fails only if the kernel has already deleted the watch
		delete(w.dirs, path)
	}
}

// Forget stops watching a directory, or all directories if path is "". It must be called for the
// path of each removal event, because a new directory at the path may have the same inode
// number.
func (w *Watcher) Forget(path string) {
	for watchedPath := range w.dirs {
		if path == "" || path == watchedPath {
			w.unwatch(watchedPath)
		}
	}
}

// Events returns the events of the watched directories. It returns nil if there is no
// inotify instance.
func (w *Watcher) Events() <-chan fsnotify.Event {
	if w.inotify == nil {
		return nil
	}
	return w.inotify.Events
}

// Errors returns errors such as lost events. It returns nil if there is no inotify
// instance.
func (w *Watcher) Errors() <-chan error {
	if w.inotify == nil {
		return nil
	}
	return w.inotify.Errors
}

// Close releases the inotify instance. A later Watch creates a new one.
func (w *Watcher) Close() {
	if w.inotify != nil {
		w.inotify.Close()
		w.inotify, w.dirs = nil, nil
	}
}

// explainLimit returns err, or a clearer error if inotify has reached a limit. The clearer error
// names the limit and the setting that raises it.
func explainLimit(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("all inotify instances are in use; raise fs.inotify.max_user_instances (sysctl), or podd's limit of open files")
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("all inotify watches are in use; raise fs.inotify.max_user_watches (sysctl)")
	}
	return err
}
