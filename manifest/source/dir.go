package source

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/manifest"
)

// A Dir is a directory of manifests, without its subdirectories, or a single file.
type Dir struct {
	path string
	opts Options
	// reader, removeDelay, settleDelay and watcher differ from the defaults only in tests.
	reader         reader
	removeDelay    time.Duration
	settleDelay    time.Duration
	watcher        func() (*fsnotify.Watcher, error) // nil: fsnotify.NewWatcher
	acceptRequests chan chan error                   // requests of AcceptEmpty, served by Run
}

var _ Source = (*Dir)(nil)

// NewDir returns the source for a path, which is a directory or a single file and need not
// exist yet.
func NewDir(path string, o Options) *Dir {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return &Dir{
		path: path, opts: o.complete(manifest.KindFile, path),
		reader: reader{checkLease}, removeDelay: removeDelay, settleDelay: settleDelay, acceptRequests: make(chan chan error),
	}
}

// Name returns the absolute path.
func (d *Dir) Name() string { return d.path }

// Kind returns manifest.KindFile.
func (d *Dir) Kind() string { return manifest.KindFile }

// HasCachedContent reports whether the cache has content of this path, or cannot be read.
// Then the path existed before and must not be created in place of one that vanished.
func (d *Dir) HasCachedContent() bool {
	if d.opts.Cache == "" {
		return false
	}
	c := viewCache(d.opts.Cache, d.path)
	defer c.close()
	return len(c.records) > 0 || len(c.damage) > 0
}

// AcceptEmpty accepts a directory that is empty, or from which manifests are missing, and that
// is not known to be the one that had them, so that their pods are removed. It returns
// ErrNothingMissing if there is no such directory, and ctx.Err() if Run does not serve the
// request before ctx is done.
func (d *Dir) AcceptEmpty(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case d.acceptRequests <- reply:
		return <-reply
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Durations of a Dir.
const (
	// eventDelay is the time in which events are collected before the files are checked.
	eventDelay = 2 * time.Millisecond
	// removeDelay is how long a file must be missing before its pods are removed. An editor
	// that renames the old file and writes a new one takes less.
	removeDelay = 50 * time.Millisecond
	// pollEvery is the interval of checks where changes are not reported.
	pollEvery = time.Second
)

// Run follows the path until ctx is done. It always returns nil.
func (d *Dir) Run(ctx context.Context, emit func(manifest.Batch)) error {
	f := newFollower(d, emit)
	defer f.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-f.notify.Events():
			f.scheduleCheck(event, ok)
		case err, ok := <-f.notify.Errors():
			f.overflow(err, ok)
		case <-f.cache.failedChanged:
			f.changed = true
			f.publish()
		case reply := <-d.acceptRequests:
			reply <- f.acceptEmpty(d.opts.Now())
		case <-timer.C:
			f.check(d.opts.Now())
		}
		timer.Reset(f.next().Sub(d.opts.Now()))
	}
}
