package source

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// scan checks everything.
func (f *follower) scan(now time.Time) {
	f.scanAt = now.Add(f.opts.CheckFrequency)
	f.changed = true
	f.listen()
	if f.cache.retry() {
		f.addCached()
	}
	f.listErr = f.list(now)
	clear(f.touched)
	f.touchAll = false
	if f.listen() { // earlier changes in a newly watched directory may have been missed
		f.scanBy(now.Add(eventDelay))
	}
	if f.watchErr != nil || f.listErr != nil || f.remote || f.mayRecover() {
		f.scanBy(now.Add(pollEvery))
	}
}

// listen updates the watched directories and reports whether one was added.
func (f *follower) listen() bool {
	fresh, err := f.notify.Watch(f.directories())
	f.watchErr = err
	return fresh
}

// list reads the place and every file in it that has changed. It returns an error if the
// place cannot be listed, or is not the directory that had the missing files.
func (f *follower) list(now time.Time) error {
	p, err := openPlace(f.path, f.only != "")
	if err != nil {
		f.markUnreadable(err, now)
		return err
	}
	defer p.Close()
	l, err := p.list(now)
	if err != nil {
		f.markUnreadable(err, now)
		return err
	}
	f.only, f.remote, f.unsafe, f.targets = p.only, p.remote, !p.trusted, p.linkDirs(l)
	f.logSkipped(p, l.skipped)
	there := map[string]bool{}
	for _, found := range l.files {
		there[filepath.Join(p.path, found.name)] = true
	}
	other := f.recognize(p, l, there, now)
	missing := f.markMissing(p, there, other, now)
	for _, found := range l.files {
		f.updateFile(p, found, now)
	}
	f.removeMissing(missing, now) // last, because a missing file may have been renamed
	if other != nil {
		return other
	}
	if len(f.files) == 0 {
		f.cache.setPlace(nil)
	}
	if !f.listed {
		f.listed = true
		f.cache.markListed()
	}
	return nil
}

// updateFile processes one file that is there.
func (f *follower) updateFile(p *place, found found, now time.Time) {
	path := filepath.Join(p.path, found.name)
	it := f.files[path]
	if it == nil {
		it = &file{content: content{path: path}, name: found.name}
		f.files[path] = it
	}
	if !it.hasFallback() {
		it.renamedFrom = f.renamed(path)
	}
	it.missingSince, it.link, it.astray, it.seenIn = time.Time{}, found.link, found.astray, p.id
	touched := f.touchAll || f.touched[path] || found.link && len(f.touched) > 0
	switch {
	case found.err != nil:
		f.fallBack(it)
		it.setError(found.err, now)
	case it.mustRead(found.stamp, touched):
		f.readFile(p, it, now)
	}
}

// renamed returns the missing file that is now at path, or nil.
func (f *follower) renamed(path string) *file {
	var b birth
	for _, it := range f.files {
		if it.missingSince.IsZero() || !it.hasFallback() || it.birth == (birth{}) {
			continue
		}
		if b == (birth{}) {
			b = birthOf(unix.AT_FDCWD, path, 0)
		}
		if it.birth == b {
			return it
		}
	}
	return nil
}

// markMissing marks the files that are not there, and returns those of them that may be
// removed. other is not nil if the place is not the directory that had the missing files.
func (f *follower) markMissing(p *place, there map[string]bool, other *placeError, now time.Time) []*file {
	var missing []*file
	for path, it := range f.files {
		switch {
		case there[path]:
		case other != nil && it.seenIn != p.id:
			f.keepMissing(it, other, now)
		default:
			if it.missingSince.IsZero() {
				it.missingSince, it.retryAt = now, time.Time{}
			}
			missing = append(missing, it)
		}
	}
	return missing
}

// removeMissing removes missing files: at once if they have no content in use, otherwise
// after removeDelay.
func (f *follower) removeMissing(missing []*file, now time.Time) {
	for _, it := range missing {
		if it.inUse != nil && now.Sub(it.missingSince) < f.removeDelay {
			f.scanBy(it.missingSince.Add(f.removeDelay))
			continue
		}
		delete(f.files, it.path)
		f.cache.drop(it.path)
	}
}

// keepMissing keeps the content of a file in use that is missing from a place which is not
// the directory that had it. If podd will accept the place soon, it does not use a cached
// content: a pod that is probably not desired must not be started only to be stopped. The
// listing is incomplete until then, so running pods are kept.
func (f *follower) keepMissing(it *file, other *placeError, now time.Time) {
	if !other.settles() {
		f.fallBack(it)
	}
	it.retryAt, it.writingSince = time.Time{}, time.Time{}
	if it.missingSince.IsZero() {
		it.missingSince = now
	}
	it.fallBehind(behindGone, now)
}

// markUnreadable marks all files as behind while the place cannot be listed. Their content
// stays in use.
func (f *follower) markUnreadable(err error, now time.Time) {
	why := behindRead
	if errors.Is(err, fs.ErrNotExist) {
		why = behindGone
	}
	for _, it := range f.files {
		f.fallBack(it)
		it.missingSince, it.retryAt, it.writingSince = time.Time{}, time.Time{}, time.Time{}
		it.fallBehind(why, now)
	}
}

// hasContent reports whether any file has a pod or object in use.
func (f *follower) hasContent() bool {
	for it := range maps.Values(f.files) {
		if it.inUse != nil && hasObjects(it.inUse) {
			return true
		}
	}
	return false
}

// mayRecover reports whether a file may become readable without an event.
func (f *follower) mayRecover() bool {
	for it := range maps.Values(f.files) {
		if it.mayRecover() {
			return true
		}
	}
	return false
}

// logSkipped logs each skipped entry once.
func (f *follower) logSkipped(p *place, skipped []skip) {
	f.skipped = skipped
	for _, s := range skipped {
		if !f.loggedSkips[s.name] && len(f.loggedSkips) < maxLoggedSkips {
			f.loggedSkips[s.name] = true
			f.opts.Log.Info("file ignored", "path", filepath.Join(p.path, s.name), "reason", s.reason)
		}
	}
}

// maxLoggedSkips limits the memory for logged names.
const maxLoggedSkips = 1000
