package source

import (
	"errors"
	"path/filepath"
	"time"

	"podd/manifest"
	"podd/manifest/dirwatch"
)

// follower is the state of one call of Dir.Run. The goroutine of Run owns it.
type follower struct {
	*Dir
	emit       func(manifest.Batch)
	dirWatcher dirwatch.Watcher
	cache      *cache

	files          map[string]*trackedFile // by path
	onlyFile       string                  // as in manifestDir, at the last check
	linkTargetDirs []string                // directories that links lead to
	skippedEntries []skippedEntry
	loggedSkips    map[string]bool // names that were logged as skipped
	startedAt      time.Time
	// hasUserAcceptedDir reports whether a user has accepted the directory. If so, the current check
	// accepts the directory with any identity.
	hasUserAcceptedDir bool
	pendingDir         pendingDir // the new directory that podd accepts if it stays unchanged; zero if there is none

	touchedPaths map[string]bool // paths named by events since the last check
	mustReadAll  bool
	nextScan     time.Time // time at which everything is checked
	pauseEnd     time.Time // end of the pause after the last check of everything; see scanPauseFactor
	listErr      error     // why the last listing failed; nil if it succeeded
	watchErr     error     // why inotify does not report changes; nil if it does
	isRemote     bool
	isUntrusted  bool // a user other than root can write to the directory

	hasListed      bool // whether a complete listing was read
	mayHaveChanged bool // whether the Batch may have changed
	lastBatch      *manifest.Batch
}

func newFollower(d *Dir, emit func(manifest.Batch)) *follower {
	f := &follower{
		Dir: d, emit: emit,
		dirWatcher: dirwatch.Watcher{New: d.newWatcher},
		cache:      d.opts.openSourceCache(d.path),
		files:      map[string]*trackedFile{}, touchedPaths: map[string]bool{}, loggedSkips: map[string]bool{},
		startedAt: d.opts.Now(),
	}
	f.addCached()
	if f.files[d.path] != nil {
		f.onlyFile = filepath.Base(d.path)
	}
	return f
}

// addCached adds the files in the cache. If the cache could be opened only after the first check,
// it also resets each file that has had no valid content so far. These files are read again, so
// that their cached content is used.
func (f *follower) addCached() {
	for _, path := range f.cache.paths() {
		if file := f.files[path]; file == nil || file.inUse == nil || file.inUse.HasRefusedDocument() {
			f.files[path] = &trackedFile{content: content{path: path}, name: filepath.Base(path)}
		}
	}
}

// close closes the watcher and the cache.
func (f *follower) close() {
	f.dirWatcher.Close()
	f.cache.close()
}

// scheduleScan schedules a full check at t, unless a full check before t is already scheduled.
func (f *follower) scheduleScan(t time.Time) {
	if t.Before(f.nextScan) {
		f.nextScan = t
	}
}

// scheduleScanAfterEvents schedules a full check after the delay in which events are collected, and
// not before the pause after the last check has ended.
func (f *follower) scheduleScanAfterEvents() {
	t := f.opts.Now().Add(minEventDelay)
	if t.Before(f.pauseEnd) {
		t = f.pauseEnd
	}
	f.scheduleScan(t)
}

// pauseAfterScan starts the pause after a full check, which has taken the given time.
func (f *follower) pauseAfterScan(took time.Duration) {
	f.pauseEnd = f.opts.Now().Add(min(scanPauseFactor*took, maxScanPause))
}

// nextCheck returns the time of the next check if no event arrives earlier.
func (f *follower) nextCheck() time.Time {
	nextTime := f.nextScan
	for _, file := range f.files {
		if !file.retryAt.IsZero() && file.retryAt.Before(nextTime) {
			nextTime = file.retryAt
		}
	}
	return nextTime
}

// check performs a full check if one is due. Otherwise it reads only the incomplete files that
// are due. Then it publishes the result.
func (f *follower) check(now time.Time) {
	if now.Before(f.nextScan) {
		f.readPending(now)
	} else {
		f.scan(now)
	}
	f.publish()
}

// ErrNothingToAccept is the error of AcceptEmpty if no manifest is missing or podd recognizes the
// directory.
var ErrNothingToAccept = errors.New("there is nothing to accept, because the directory was not replaced, or no manifest is missing")

// acceptEmpty accepts the directory although manifests are missing from it. It returns
// ErrNothingToAccept unless the last check returned a replacedDirError.
func (f *follower) acceptEmpty(now time.Time) error {
	if _, isReplaced := errors.AsType[*replacedDirError](f.listErr); !isReplaced {
		return ErrNothingToAccept
	}
	f.hasUserAcceptedDir = true
	f.scan(now)
	f.hasUserAcceptedDir = false
	f.publish()
	return f.listErr
}

// readPending reads the incomplete files that are due.
func (f *follower) readPending(now time.Time) {
	dir, err := openManifestDir(f.path, f.onlyFile != "")
	if err != nil {
		f.nextScan = now
		return
	}
	defer dir.Close()
	for _, file := range f.files {
		if !file.retryAt.IsZero() && !file.retryAt.After(now) {
			f.readFile(dir, file, now)
		}
	}
}
