package source

import (
	"errors"
	"io/fs"
	"time"
)

// readFile reads a file if it is complete. Otherwise readFile schedules the next read.
func (f *follower) readFile(dir *manifestDir, file *trackedFile, now time.Time) {
	t, err := f.reader.read(dir, file.name, file.isLink, &file.firstRead, now)
	file.birth = t.birth
	switch {
	case err == nil:
		f.useContent(file, t, now)
	case errors.Is(err, errOpenForWriting), errors.Is(err, errReadAgain):
		f.fallBack(file)
		f.mayHaveChanged = file.setIncomplete(now, errors.Is(err, errReadAgain)) || f.mayHaveChanged
	case errors.Is(err, fs.ErrNotExist) && !file.isLink:
		file.retryAt = time.Time{}
		f.scheduleScan(now.Add(removeDelay)) // scan again, because the file was removed after it was listed
	default:
		f.fallBack(file)
		file.setError(err, now)
		file.stamp, file.isSettled, file.othersCanWrite, f.mayHaveChanged = t.stamp, true, false, true
	}
}

// useContent decodes t, a complete content, and makes it the current content of the file.
func (f *follower) useContent(file *trackedFile, t readResult, now time.Time) {
	file.stamp, file.isSettled, file.othersCanWrite = t.stamp, t.stamp.isSettled(now), t.othersCanWrite
	file.readErr, file.retryAt, file.writingSince, file.firstRead = nil, time.Time{}, time.Time{}, firstRead{}
	f.mayHaveChanged = true
	switch {
	case file.renamedFrom != nil:
		// Decode the content even if it was read before, because its pods must get the new path as
		// their origin.
	case file.inUse != nil && file.inUseDigest == t.digest:
		file.confirmInUse()
		return
	case file.currentDigest == t.digest:
		file.setOutdated(outdatedRefused, t.stamp.changeTime(now))
		return
	}
	decodedFile := f.opts.decode(t.data, file.path)
	// The cached content is necessary, because an object that is immutable in the cached content
	// must not change. It must not change even in an edit that was made while podd was not running.
	if decodedFile.HasRefusedDocument() || len(decodedFile.Objects.Origins) > 0 {
		f.fallBack(file)
	}
	contentTime := t.stamp.modTime(now)
	if file.setCurrent(decodedFile, t.digest, contentTime, t.stamp.changeTime(now)) && f.cache.mayStore(decodedFile) {
		f.cache.put(file.path, record{Digest: t.digest, ContentTime: contentTime.UTC()}, t.data)
	}
}

// fallBack restores the last valid content of a file, from the file's former name or from the
// cache. It has no effect if the file already has valid content in use (hasFallback).
func (f *follower) fallBack(file *trackedFile) {
	if file.hasFallback() {
		return
	}
	if file.renamedFrom != nil {
		data, r, ok := f.cache.load(file.renamedFrom.path)
		if !ok {
			file.restore(file.renamedFrom.inUse, file.renamedFrom.inUseDigest, file.renamedFrom.inUseTime)
			return
		}
		file.restore(f.opts.decode(data, file.path), r.Digest, r.ContentTime)
		f.cache.put(file.path, r, data)
		return
	}
	if data, r, ok := f.cache.load(file.path); ok {
		file.restore(f.opts.decode(data, file.path), r.Digest, r.ContentTime)
	}
}
