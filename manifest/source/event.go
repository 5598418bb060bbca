package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// scheduleCheck schedules a check. The event's payload is not used as state.
func (f *follower) scheduleCheck(event fsnotify.Event, ok bool) {
	if !ok {
		f.overflow(fsnotify.ErrClosed, ok)
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		f.notify.Forget(event.Name)
	}
	if !f.isRelevant(event.Name) {
		return
	}
	f.touched[event.Name] = true
	f.scanBy(f.opts.Now().Add(eventDelay))
}

// isRelevant reports whether an event can be about a manifest. A directory that is watched
// for one name, or that contains editors' temporary files, has many other events.
func (f *follower) isRelevant(name string) bool {
	dir, kind := filepath.Dir(name), kindOf(filepath.Base(name))
	switch {
	case f.listErr != nil:
		return within(name, f.path) || within(f.path, name)
	case len(f.targets) > 0, kind == namePlumbing:
		return true
	case f.only != "":
		return name == f.path || dir != filepath.Dir(f.path)
	}
	return kind == nameManifest || dir != f.path
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// overflow schedules a check of everything, because events were lost. If ok is false, no
// more events will come.
func (f *follower) overflow(err error, ok bool) {
	switch {
	case !ok:
		f.notify.Close()
	case errors.Is(err, fsnotify.ErrEventOverflow):
	default:
		f.opts.Log.Warn("watching manifests failed; checking all files", "path", f.path, "err", err)
	}
	f.notify.Forget("")
	f.touchAll = true
	f.scanBy(f.opts.Now().Add(eventDelay))
}

// directories returns the directories to watch: the directory of the manifests, the targets
// of links, the directory that contains path if path is a link, and the nearest existing
// directory above path if path does not exist.
func (f *follower) directories() []string {
	dirs := append([]string{}, f.targets...)
	info, err := os.Lstat(f.path)
	switch {
	case err != nil:
		return append(dirs, nearest(f.path))
	case info.IsDir():
		return append(dirs, f.path)
	case info.Mode()&os.ModeSymlink == 0:
		return append(dirs, filepath.Dir(f.path))
	}
	dirs = append(dirs, filepath.Dir(f.path))
	if info, err := os.Stat(f.path); err == nil && info.IsDir() {
		dirs = append(dirs, f.path)
	}
	return dirs
}

// nearest returns the closest existing directory above path. The creation of path is first
// visible there.
func nearest(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
