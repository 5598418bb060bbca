package source

import (
	"errors"
	"io/fs"
	"time"
)

// readFile reads a file if it is complete. Otherwise it schedules the next attempt.
func (f *follower) readFile(p *place, it *file, now time.Time) {
	t, err := f.reader.read(p, it.name, it.link, &it.draft, now)
	it.birth = t.birth
	switch {
	case err == nil:
		f.accept(it, t, now)
	case errors.Is(err, errWriting), errors.Is(err, errDraft):
		f.fallBack(it)
		f.changed = it.setIncomplete(now, errors.Is(err, errDraft)) || f.changed
	case errors.Is(err, fs.ErrNotExist) && !it.link:
		it.retryAt = time.Time{}
		f.scanBy(now.Add(removeDelay)) // the file was removed after it was listed
	default:
		f.fallBack(it)
		it.setError(err, now)
		it.stamp, it.settled, it.shared, f.changed = t.stamp, true, false, true
	}
}

// accept makes t, a complete content, the current content of the file.
func (f *follower) accept(it *file, t text, now time.Time) {
	it.stamp, it.settled, it.shared = t.stamp, t.stamp.settled(now), t.shared
	it.readErr, it.retryAt, it.writingSince, it.draft = nil, time.Time{}, time.Time{}, draft{}
	f.changed = true
	switch {
	case it.renamedFrom != nil: // also if the content is already known under this name
	case it.inUse != nil && it.digest == t.digest:
		it.restoreOffered()
		return
	case it.offered == t.digest:
		it.fallBehind(behindRefused, t.stamp.changed(now))
		return
	}
	decoded := f.opts.decode(t.data, it.path)
	// Fields that were immutable in the previous content stay immutable even if podd was
	// not running.
	if decoded.Refused() || len(decoded.Objects.Origins) > 0 {
		f.fallBack(it)
	}
	version := t.stamp.version(now)
	if it.offer(decoded, t.digest, version, t.stamp.changed(now)) && f.cache.mayStore(decoded) {
		f.cache.put(it.path, record{Digest: t.digest, Version: version.UTC()}, t.data)
	}
}

// fallBack restores the last valid content of a file for which nothing is loaded yet: from
// the file's former name, or from the cache.
func (f *follower) fallBack(it *file) {
	if it.hasFallback() {
		return
	}
	if it.renamedFrom != nil {
		data, r, ok := f.cache.load(it.renamedFrom.path)
		if !ok {
			it.restore(it.renamedFrom.inUse, it.renamedFrom.digest, it.renamedFrom.version)
			return
		}
		it.restore(f.opts.decode(data, it.path), r.Digest, r.Version)
		f.cache.put(it.path, r, data)
		return
	}
	if data, r, ok := f.cache.load(it.path); ok {
		it.restore(f.opts.decode(data, it.path), r.Digest, r.Version)
	}
}
