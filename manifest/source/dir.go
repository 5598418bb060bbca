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
	// reader, removeDelay, settleDelay and newWatcher differ from the defaults only in tests.
	reader         reader
	removeDelay    time.Duration
	settleDelay    time.Duration
	newWatcher     func() (*fsnotify.Watcher, error) // nil means fsnotify.NewWatcher
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
		path: path, opts: o.withDefaults(manifest.KindFile, path),
		reader: reader{checkLease}, removeDelay: removeDelay, settleDelay: settleDelay, acceptRequests: make(chan chan error),
	}
}

// Name returns the absolute path.
func (d *Dir) Name() string { return d.path }

// Kind returns manifest.KindFile.
func (d *Dir) Kind() string { return manifest.KindFile }

// HasCachedContent reports whether the cache contains content of this path or cannot be read. If
// so, the path may have existed before, and podd must not create an empty directory at the path.
func (d *Dir) HasCachedContent() bool {
	if d.opts.CacheDir == "" {
		return false
	}
	c := openCacheReadOnly(d.opts.CacheDir, d.path)
	defer c.close()
	return len(c.records) > 0 || len(c.damageProblems) > 0
}

// AcceptEmpty removes the pods of missing manifests although podd has not recognized the
// directory as the one that contained these manifests. It returns ErrNothingToAccept if no
// manifest is missing or the directory is recognized. It returns ctx.Err() if Run does not serve
// the request before ctx is done.
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
	// minEventDelay is how long podd collects events before it checks the files.
	minEventDelay = 2 * time.Millisecond
	// After a check, podd pauses for scanPauseFactor times the duration of this check, at most
	// maxScanPause. So podd soon reads a single change, but does not check all files of a large
	// directory again after every change.
	scanPauseFactor = 9
	maxScanPause    = 200 * time.Millisecond
	// removeDelay is how long a file must be missing before its pods are removed. It is longer
	// than the time in which an editor renames the old file and writes a new file.
	removeDelay = 50 * time.Millisecond
	// scanInterval is the interval between checks if changes of the directory cause no events.
	scanInterval = time.Second
)

// Run watches the path until ctx is done. It always returns nil.
func (d *Dir) Run(ctx context.Context, emit func(manifest.Batch)) error {
	f := newFollower(d, emit)
	defer f.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-f.dirWatcher.Events():
			f.handleEvent(event, ok)
		case err, ok := <-f.dirWatcher.Errors():
			f.handleLostEvents(err, ok)
		case <-f.cache.storeErrChanged:
			f.mayHaveChanged = true
			f.publish()
		case reply := <-d.acceptRequests:
			reply <- f.acceptEmpty(d.opts.Now())
		case <-timer.C:
			f.check(d.opts.Now())
		}
		timer.Reset(f.nextCheck().Sub(d.opts.Now()))
	}
}
