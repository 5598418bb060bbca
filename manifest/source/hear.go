package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// touch notes that something happened; what, the next look finds out.
func (f *follower) touch(event fsnotify.Event, ok bool) {
	if !ok {
		f.overflow(fsnotify.ErrClosed, ok)
		return
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		f.notify.forget(event.Name)
	}
	if !f.concerns(event.Name) {
		return
	}
	f.touched[event.Name] = true
	f.scanBy(f.opts.Now().Add(settle))
}

// concerns says whether an event can be about a manifest: directories that are
// watched for one name, and those of busy editors, tell of much else.
func (f *follower) concerns(name string) bool {
	dir, kind := filepath.Dir(name), kindOf(filepath.Base(name))
	switch {
	case f.lost != nil:
		return within(name, f.path) || within(f.path, name)
	case len(f.targets) > 0, kind == namePlumbing:
		return true
	case f.only != "":
		return name == f.path || dir != filepath.Dir(f.path)
	}
	return kind == nameManifest || dir != f.path
}

// within says that path is dir or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// overflow looks at everything again, since events were lost. When ok is false
// there will be no more.
func (f *follower) overflow(err error, ok bool) {
	switch {
	case !ok:
		f.notify.close()
	case errors.Is(err, fsnotify.ErrEventOverflow):
	default:
		f.opts.Log.Warn("watching manifests", "path", f.path, "error", err)
	}
	f.notify.forget("")
	f.touchAll = true
	f.scanBy(f.opts.Now().Add(settle))
}

// directories are those to be watched now: where the manifests are, what links
// lead to, the link's own place where the path is one, and the nearest place
// that exists while there is nothing.
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
