package source

import (
	"errors"
	"path/filepath"
	"time"

	"podd/manifest"
	"podd/manifest/dirwatch"
)

// follower is the state of one Run of a Dir. The goroutine of Run owns it.
type follower struct {
	*Dir
	emit   func(manifest.Batch)
	notify dirwatch.Watcher
	cache  *cache

	files       map[string]*file // by path
	only        string           // as in place, at the last check
	targets     []string         // directories that links lead to
	skipped     []skip
	loggedSkips map[string]bool // names that were logged as skipped
	started     time.Time
	// accepting makes the current check accept the directory, whatever its identity.
	accepting bool
	settling  settling // of a directory that is not accepted yet

	touched  map[string]bool // paths named by events since the last check
	touchAll bool
	scanAt   time.Time // when to check everything
	listErr  error     // why the place cannot be listed; nil if it was listed
	watchErr error     // why changes are not reported; nil if they are
	remote   bool
	unsafe   bool // a user other than root can write the place

	listed  bool // a complete listing was read
	changed bool // the Batch may have changed
	last    *manifest.Batch
}

func newFollower(d *Dir, emit func(manifest.Batch)) *follower {
	f := &follower{
		Dir: d, emit: emit,
		notify: dirwatch.Watcher{New: d.watcher},
		cache:  d.opts.cache(d.path),
		files:  map[string]*file{}, touched: map[string]bool{}, loggedSkips: map[string]bool{},
		started: d.opts.Now(),
	}
	f.addCached()
	if f.files[d.path] != nil {
		f.only = filepath.Base(d.path)
	}
	return f
}

// addCached adds the files in the cache. If the cache was opened late, a file of which no
// valid content was read before is read again, so that its cached content is used.
func (f *follower) addCached() {
	for _, path := range f.cache.paths() {
		if it := f.files[path]; it == nil || it.inUse == nil || it.inUse.Refused() {
			f.files[path] = &file{content: content{path: path}, name: filepath.Base(path)}
		}
	}
}

// close stops the watcher and the cache.
func (f *follower) close() {
	f.notify.Close()
	f.cache.close()
}

// scanBy schedules a full check at t or earlier.
func (f *follower) scanBy(t time.Time) {
	if t.Before(f.scanAt) {
		f.scanAt = t
	}
}

// next returns when to check again if no event arrives.
func (f *follower) next() time.Time {
	at := f.scanAt
	for _, file := range f.files {
		if !file.retryAt.IsZero() && file.retryAt.Before(at) {
			at = file.retryAt
		}
	}
	return at
}

// check performs a full check if it is due, or else checks only the incomplete files.
func (f *follower) check(now time.Time) {
	if now.Before(f.scanAt) {
		f.readPending(now)
	} else {
		f.scan(now)
	}
	f.publish()
}

// ErrNothingMissing is returned by AcceptEmpty if there is nothing to accept.
var ErrNothingMissing = errors.New("nothing to accept: the directory was not replaced, or no manifest is missing")

// acceptEmpty accepts a place that is not the directory which had the missing files.
func (f *follower) acceptEmpty(now time.Time) error {
	if _, other := errors.AsType[*placeError](f.listErr); !other {
		return ErrNothingMissing
	}
	f.accepting = true
	f.scan(now)
	f.accepting = false
	f.publish()
	return f.listErr
}

// readPending reads the incomplete files that are due.
func (f *follower) readPending(now time.Time) {
	p, err := openPlace(f.path, f.only != "")
	if err != nil {
		f.scanAt = now
		return
	}
	defer p.Close()
	for _, file := range f.files {
		if !file.retryAt.IsZero() && !file.retryAt.After(now) {
			f.readFile(p, file, now)
		}
	}
}
