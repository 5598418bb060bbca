package source

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// scan checks the directory and all files.
func (f *follower) scan(now time.Time) {
	startTime := time.Now()
	defer func() { f.pauseAfterScan(time.Since(startTime)) }()
	f.nextScan = now.Add(f.opts.CheckFrequency)
	f.mayHaveChanged = true
	f.updateWatches()
	if f.cache.retryStore() {
		f.addCached()
	}
	f.listErr = f.list(now)
	clear(f.touchedPaths)
	f.mustReadAll = false
	if f.updateWatches() { // check again, because earlier changes in a newly watched directory may have caused no events
		f.scheduleScan(now.Add(minEventDelay))
	}
	if f.watchErr != nil || f.listErr != nil || f.isRemote || f.mayRecover() {
		f.scheduleScan(now.Add(scanInterval))
	}
}

// updateWatches updates the watched directories. It reports whether it added a directory.
func (f *follower) updateWatches() (added bool) {
	added, f.watchErr = f.dirWatcher.Watch(f.watchedDirectories())
	return added
}

// list lists the directory and reads every file that has changed. It returns an error if the
// directory cannot be listed, or if recognize does not accept it.
func (f *follower) list(now time.Time) error {
	dir, err := openManifestDir(f.path, f.onlyFile != "")
	if err != nil {
		f.markUnreadable(err, now)
		return err
	}
	defer dir.Close()
	l, err := dir.list(f.opts, now)
	if err != nil {
		f.markUnreadable(err, now)
		return err
	}
	f.onlyFile, f.isRemote, f.isUntrusted, f.linkTargetDirs = dir.onlyFile, dir.isRemote, !dir.isTrusted, dir.linkTargetDirs(l)
	f.logSkipped(dir, l.skipped)
	presentPaths := map[string]bool{}
	for _, entry := range l.files {
		presentPaths[filepath.Join(dir.path, entry.name)] = true
	}
	replacedErr := f.recognize(dir, l, presentPaths, now)
	missingFiles := f.markMissing(dir, presentPaths, replacedErr, now)
	for _, entry := range l.files {
		f.updateFile(dir, entry, now)
	}
	f.removeMissing(missingFiles, now) // last, because a missing file may have been renamed
	if replacedErr != nil {
		return replacedErr
	}
	if len(f.files) == 0 {
		f.cache.setManifestDir(nil)
	}
	if !f.hasListed {
		f.hasListed = true
		f.cache.markListed()
	}
	return nil
}

// updateFile processes one entry of the directory and reads its file if necessary.
func (f *follower) updateFile(dir *manifestDir, entry manifestEntry, now time.Time) {
	path := filepath.Join(dir.path, entry.name)
	file := f.files[path]
	if file == nil {
		file = &trackedFile{content: content{path: path}, name: entry.name}
		f.files[path] = file
	}
	if !file.hasFallback() {
		file.renamedFrom = f.findRenamed(path)
	}
	file.missingSince, file.isLink, file.hasUnsafeLink, file.lastDir = time.Time{}, entry.isLink, entry.hasUnsafeLink, dir.id
	isTouched := f.mustReadAll || f.touchedPaths[path] || entry.isLink && len(f.touchedPaths) > 0
	switch {
	case entry.err != nil:
		f.fallBack(file)
		file.setError(entry.err, now)
	case file.mustRead(entry.stamp, isTouched):
		f.readFile(dir, file, now)
	}
}

// findRenamed returns the missing file that was renamed to path, or nil if there is none.
func (f *follower) findRenamed(path string) *trackedFile {
	var b birth
	for _, file := range f.files {
		if file.missingSince.IsZero() || !file.hasFallback() || file.birth == (birth{}) {
			continue
		}
		if b == (birth{}) {
			b = readBirth(unix.AT_FDCWD, path, 0)
		}
		if file.birth == b {
			return file
		}
	}
	return nil
}

// markMissing marks the tracked files whose paths are not in presentPaths. It returns the marked
// files that may be removed. replacedErr is the error of recognize, or nil. If it is not nil,
// markMissing keeps the files that podd last found in a different directory, and does not return
// them.
func (f *follower) markMissing(dir *manifestDir, presentPaths map[string]bool, replacedErr *replacedDirError, now time.Time) []*trackedFile {
	var missing []*trackedFile
	for path, file := range f.files {
		switch {
		case presentPaths[path]:
		case replacedErr != nil && file.lastDir != dir.id:
			f.keepMissing(file, replacedErr, now)
		default:
			if file.missingSince.IsZero() {
				file.missingSince, file.retryAt = now, time.Time{}
			}
			missing = append(missing, file)
		}
	}
	return missing
}

// removeMissing removes missing files: at once if they have no content in use, otherwise
// after removeDelay.
func (f *follower) removeMissing(missing []*trackedFile, now time.Time) {
	for _, file := range missing {
		if file.inUse != nil && now.Sub(file.missingSince) < f.removeDelay {
			f.scheduleScan(file.missingSince.Add(f.removeDelay))
			continue
		}
		delete(f.files, file.path)
		f.cache.removeEntry(file.path)
	}
}

// keepMissing keeps the content of a file in use although the file is missing from the directory.
// It is called if the directory is not the one that contained the file. If podd will accept the
// directory soon, keepMissing does not load content from the cache. Otherwise podd would start the
// pods of the file and stop them soon afterwards. Until podd accepts the directory, the listing is
// incomplete, so running pods are kept.
func (f *follower) keepMissing(file *trackedFile, replacedErr *replacedDirError, now time.Time) {
	if !replacedErr.willBeAccepted() {
		f.fallBack(file)
	}
	file.retryAt, file.writingSince = time.Time{}, time.Time{}
	if file.missingSince.IsZero() {
		file.missingSince = now
	}
	file.setOutdated(outdatedGone, now)
}

// markUnreadable marks all files as outdated, because the directory cannot be listed. Their content
// stays in use.
func (f *follower) markUnreadable(err error, now time.Time) {
	reason := outdatedRead
	if errors.Is(err, fs.ErrNotExist) {
		reason = outdatedGone
	}
	for _, file := range f.files {
		f.fallBack(file)
		file.missingSince, file.retryAt, file.writingSince = time.Time{}, time.Time{}, time.Time{}
		file.setOutdated(reason, now)
	}
}

// hasContent reports whether any file has a pod or object in use.
func (f *follower) hasContent() bool {
	for file := range maps.Values(f.files) {
		if file.inUse != nil && hasObjects(file.inUse) {
			return true
		}
	}
	return false
}

// mayRecover reports whether a file may become readable without an event.
func (f *follower) mayRecover() bool {
	for file := range maps.Values(f.files) {
		if file.mayRecover() {
			return true
		}
	}
	return false
}

// logSkipped logs each skipped entry once.
func (f *follower) logSkipped(dir *manifestDir, entries []skippedEntry) {
	f.skippedEntries = entries
	for _, s := range entries {
		if !f.loggedSkips[s.name] && len(f.loggedSkips) < maxLoggedSkips {
			f.loggedSkips[s.name] = true
			f.opts.Log.Info("file ignored", "path", filepath.Join(dir.path, s.name), "reason", s.reason)
		}
	}
}

// maxLoggedSkips is the maximum number of names in loggedSkips.
const maxLoggedSkips = 1000
