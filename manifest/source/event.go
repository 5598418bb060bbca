package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"podd/manifest/filename"
)

// handleEvent schedules a check. The check does not rely on the event, because events can be
// lost. ok is false if the channel of events was closed.
func (f *follower) handleEvent(event fsnotify.Event, ok bool) {
	if !ok {
		f.handleLostEvents(fsnotify.ErrClosed, ok)
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		f.dirWatcher.Forget(event.Name)
	}
	if !f.isRelevant(event.Name) {
		return
	}
	f.touchedPaths[event.Name] = true
	f.scheduleScanAfterEvents()
}

// isRelevant reports whether an event for this path can be about a manifest. All other events, such
// as events for temporary files of editors, are ignored, because there can be many of them.
func (f *follower) isRelevant(name string) bool {
	dir, kind := filepath.Dir(name), f.opts.classify(filepath.Base(name))
	switch {
	case f.listErr != nil:
		return isWithin(name, f.path) || isWithin(f.path, name)
	case len(f.linkTargetDirs) > 0, kind == filename.VolumeLink:
		return true
	case f.onlyFile != "":
		return name == f.path || dir != filepath.Dir(f.path)
	}
	return kind == filename.Manifest || dir != f.path
}

// isWithin reports whether path is dir, or is below dir.
func isWithin(path, dir string) bool {
	suffix, ok := strings.CutPrefix(path, dir)
	return ok && (suffix == "" || suffix[0] == '/' || strings.HasSuffix(dir, "/"))
}

// handleLostEvents schedules a check of all files, because events were lost. If ok is false, the
// channel of errors was closed and no more events will come.
func (f *follower) handleLostEvents(err error, ok bool) {
	switch {
	case !ok:
		f.dirWatcher.Close()
	case errors.Is(err, fsnotify.ErrEventOverflow):
	default:
		f.opts.Log.Warn("watching manifests failed; checking all files", "path", f.path, "err", err)
	}
	f.dirWatcher.Forget("")
	f.mustReadAll = true
	f.scheduleScanAfterEvents()
}

// watchedDirectories returns the directories to watch. They always include the directories to which
// links lead. If path is a directory, it is watched. If path is a file, the directory that contains
// the file is watched. If path is a link to a directory, the target and the directory that contains
// the link are watched. If path does not exist, the nearest existing directory above path is
// watched.
func (f *follower) watchedDirectories() []string {
	dirs := append([]string{}, f.linkTargetDirs...)
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

// nearestExistingDir returns the closest existing directory above path. When the next directory of
// path is created, this directory gets an event.
func nearestExistingDir(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
