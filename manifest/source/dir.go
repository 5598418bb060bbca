package source

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/manifest"
)

// Dir is a directory of manifests, not looked into deeper, or a single file.
type Dir struct {
	path string
	opts Options
	// reader and watcher are the kernel's and hold is the constant, or a test's.
	reader  reader
	hold    time.Duration
	watcher func() (*fsnotify.Watcher, error)
}

var _ Source = (*Dir)(nil)

// NewDir returns the source of a path: a directory or a single file, which need
// not exist yet.
func NewDir(path string, o Options) *Dir {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return &Dir{
		path: path, opts: o.complete(manifest.KindFile, path),
		reader: reader{askLease}, hold: hold, watcher: fsnotify.NewWatcher,
	}
}

// Name is the absolute path.
func (d *Dir) Name() string { return d.path }

// Kind is manifest.KindFile.
func (d *Dir) Kind() string { return manifest.KindFile }

// Keeps says that the cache has contents of files here, or cannot tell: the path
// was there once, and is not to be made anew in place of one that vanished.
func (d *Dir) Keeps() bool {
	if d.opts.Cache == "" {
		return false
	}
	c := viewCache(d.opts.Cache, d.path)
	defer c.close()
	return len(c.records) > 0 || len(c.damage) > 0
}

// Times of a Dir.
const (
	// settle is how long the events of one moment are collected.
	settle = 2 * time.Millisecond
	// hold is how long a file must be gone before its pods are: an editor that
	// renames the old one away and writes a new one takes less.
	hold = 50 * time.Millisecond
	// pollEvery is how often a place is looked at that cannot tell of changes.
	pollEvery = time.Second
)

// Run follows the path until ctx is done; it never fails.
func (d *Dir) Run(ctx context.Context, emit func(manifest.Batch)) error {
	f := newFollower(d, emit)
	defer f.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-f.notify.events():
			f.touch(event, ok)
		case err, ok := <-f.notify.errs():
			f.overflow(err, ok)
		case <-f.cache.told:
			f.changed = true
			f.publish()
		case <-timer.C:
			f.look(d.opts.Now())
		}
		timer.Reset(f.next().Sub(d.opts.Now()))
	}
}
