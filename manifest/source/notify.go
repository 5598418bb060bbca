package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// notifier wakes its owner when something happens in the watched directories.
// It never says what to do about it; the owner looks at the whole again.
type notifier struct {
	make func() (*fsnotify.Watcher, error) // fsnotify.NewWatcher, or a test's
	fs   *fsnotify.Watcher                 // nil: inotify cannot be had now
	dirs map[string]identity               // watched, by path
}

// identity tells two directories with one path apart.
type identity struct{ dev, ino uint64 }

// watch makes dirs the watched directories. Those that are watched already
// stay, unless another directory has come to be at their path. It says whether
// any is watched only from now on, so that what happened there before may be
// unknown. After an error the caller polls, and calls again.
func (n *notifier) watch(dirs []string) (fresh bool, err error) {
	if n.fs == nil {
		made, err := n.make()
		if err != nil {
			return false, inotifyError(err)
		}
		n.fs, n.dirs = made, map[string]identity{}
	}
	for path := range n.dirs {
		if !slices.Contains(dirs, path) {
			n.drop(path)
		}
	}
	for _, path := range dirs {
		added, err := n.add(path)
		if err != nil {
			return fresh, inotifyError(err)
		}
		fresh = fresh || added
	}
	return fresh, nil
}

// add watches one directory; one that is not there is no error.
func (n *notifier) add(path string) (added bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		n.drop(path)
		return false, nil
	}
	s := stampOf(info)
	id := identity{s.dev, s.ino}
	if n.dirs[path] == id {
		return false, nil
	}
	n.drop(path)
	switch err := n.fs.Add(path); {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	n.dirs[path] = id
	return true, nil
}

// drop ends the watch of a directory that may be gone and unwatched already.
func (n *notifier) drop(path string) {
	if _, ok := n.dirs[path]; ok {
		_ = n.fs.Remove(path) // fails only for a watch that the kernel has ended
		delete(n.dirs, path)
	}
}

// forget ends the watches of a directory that an event names, since its removal
// ended it already and its successor may have its inode; "" means all of them.
func (n *notifier) forget(path string) {
	for watched := range n.dirs {
		if path == "" || path == watched {
			n.drop(watched)
		}
	}
}

// events and errs are nil, so never ready, without inotify.
func (n *notifier) events() <-chan fsnotify.Event {
	if n.fs == nil {
		return nil
	}
	return n.fs.Events
}

func (n *notifier) errs() <-chan error {
	if n.fs == nil {
		return nil
	}
	return n.fs.Errors
}

// close ends the watcher and what it started.
func (n *notifier) close() {
	if n.fs != nil {
		n.fs.Close()
		n.fs, n.dirs = nil, nil
	}
}

// inotifyError says which limit was reached.
func inotifyError(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("all inotify instances are in use; raise fs.inotify.max_user_instances (sysctl), or podd's limit of open files")
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("all inotify watches are in use; raise fs.inotify.max_user_watches (sysctl)")
	}
	return err
}

// nearest is the closest directory above path that exists: where its coming
// into being can be seen first.
func nearest(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
