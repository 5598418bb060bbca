package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// handleEvent schedules a check. It does not use the event as state, because events can be lost.
// ok is false if the channel of events was closed.
func (f *follower) handleEvent(event fsnotify.Event, ok bool) {
	if !ok {
		f.handleLostEvents(fsnotify.ErrClosed, ok)
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		f.notify.Forget(event.Name)
	}
	if !f.isRelevant(event.Name) {
		return
	}
	f.touched[event.Name] = true
	f.scanAfterEvents()
}

// isRelevant reports whether an event for this path can be about a manifest. The other events
// are ignored, because a directory with editors' temporary files, or one that is watched for a
// single file, can have many of them.
func (f *follower) isRelevant(name string) bool {
	dir, kind := filepath.Dir(name), kindOf(filepath.Base(name))
	switch {
	case f.listErr != nil:
		return isWithin(name, f.path) || isWithin(f.path, name)
	case len(f.targets) > 0, kind == namePlumbing:
		return true
	case f.onlyFile != "":
		return name == f.path || dir != filepath.Dir(f.path)
	}
	return kind == nameManifest || dir != f.path
}

// isWithin reports whether path is dir, or is below dir.
func isWithin(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// handleLostEvents schedules a check of all files, because events were lost. If ok is false, the
// channel of errors was closed and no more events will come.
func (f *follower) handleLostEvents(err error, ok bool) {
	switch {
	case !ok:
		f.notify.Close()
	case errors.Is(err, fsnotify.ErrEventOverflow):
	default:
		f.opts.Log.Warn("watching manifests failed; checking all files", "path", f.path, "err", err)
	}
	f.notify.Forget("")
	f.touchAll = true
	f.scanAfterEvents()
}

// directories returns the directories to watch: the directory of the manifests, the targets
// of links, the directory that contains path if path is a link, and the nearestExistingDir existing
// directory above path if path does not exist.
func (f *follower) directories() []string {
	dirs := append([]string{}, f.targets...)
	info, err := os.Lstat(f.path)
	switch {
	case err != nil:
		return append(dirs, nearestExistingDir(f.path))
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

// nearestExistingDir returns the closest existing directory above path. The creation of path is
// first visible there.
func nearestExistingDir(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
