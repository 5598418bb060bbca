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

	files       map[string]*trackedFile // by path
	onlyFile    string                  // as in manifestDir, at the last check
	targets     []string                // directories that links lead to
	skipped     []skippedEntry
	loggedSkips map[string]bool // names that were logged as skipped
	started     time.Time
	// accepting reports whether a user has accepted the directory. If so, the current check
	// accepts the directory with any identity.
	accepting  bool
	pendingDir pendingDir // the directory that podd has not accepted yet; zero if there is none

	touched   map[string]bool // paths named by events since the last check
	touchAll  bool
	scanAt    time.Time     // when to check everything
	scanTook  time.Duration // duration of the last check of everything
	listErr   error         // why the last listing failed; nil if it succeeded
	watchErr  error         // why inotify does not report changes; nil if it does
	remote    bool
	untrusted bool // a user other than root can write to the directory

	listed  bool // whether a complete listing was read
	changed bool // whether the Batch may have changed
	last    *manifest.Batch
}

func newFollower(d *Dir, emit func(manifest.Batch)) *follower {
	f := &follower{
		Dir: d, emit: emit,
		notify: dirwatch.Watcher{New: d.watcher},
		cache:  d.opts.cache(d.path),
		files:  map[string]*trackedFile{}, touched: map[string]bool{}, loggedSkips: map[string]bool{},
		started: d.opts.Now(),
	}
	f.addCached()
	if f.files[d.path] != nil {
		f.onlyFile = filepath.Base(d.path)
	}
	return f
}

// addCached adds the files in the cache. If the cache was opened late, it also resets the files
// of which no valid content was read before. These files are then read again, so that their
// cached content is used.
func (f *follower) addCached() {
	for _, path := range f.cache.paths() {
		if file := f.files[path]; file == nil || file.inUse == nil || file.inUse.Refused() {
			f.files[path] = &trackedFile{content: content{path: path}, name: filepath.Base(path)}
		}
	}
}

// close closes the watcher and the cache.
func (f *follower) close() {
	f.notify.Close()
	f.cache.close()
}

// scanBy schedules a full check at t, unless an earlier check is scheduled.
func (f *follower) scanBy(t time.Time) {
	if t.Before(f.scanAt) {
		f.scanAt = t
	}
}

// scanAfterEvents schedules a full check after the delay in which events are collected.
func (f *follower) scanAfterEvents() {
	f.scanBy(f.opts.Now().Add(min(max(minEventDelay, eventDelayFactor*f.scanTook), maxEventDelay)))
}

// nextCheck returns the time of the next check if no event arrives earlier.
func (f *follower) nextCheck() time.Time {
	at := f.scanAt
	for _, file := range f.files {
		if !file.retryAt.IsZero() && file.retryAt.Before(at) {
			at = file.retryAt
		}
	}
	return at
}

// check performs a full check if one is due. Otherwise it reads only the incomplete files that
// are due. Then it publishes the result.
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

// acceptEmpty accepts the directory although manifests are missing from it. It returns
// ErrNothingMissing if there is nothing to accept.
func (f *follower) acceptEmpty(now time.Time) error {
	if _, other := errors.AsType[*replacedDirError](f.listErr); !other {
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
	dir, err := openManifestDir(f.path, f.onlyFile != "")
	if err != nil {
		f.scanAt = now
		return
	}
	defer dir.Close()
	for _, file := range f.files {
		if !file.retryAt.IsZero() && !file.retryAt.After(now) {
			f.readFile(dir, file, now)
		}
	}
}
