package source

import (
	"errors"
	"io/fs"
	"time"
)

// ask reads a file if it is complete, and else notes when to ask again.
func (f *follower) ask(p *place, it *file, now time.Time) {
	t, err := f.reader.read(p, it.name, it.link, &it.draft, now)
	it.birth = t.birth
	switch {
	case err == nil:
		f.take(it, t, now)
	case errors.Is(err, errWriting), errors.Is(err, errDraft):
		f.fallBack(it)
		f.changed = it.wait(now, errors.Is(err, errDraft)) || f.changed
	case errors.Is(err, fs.ErrNotExist) && !it.link:
		it.askAt = time.Time{}
		f.scanBy(now.Add(hold)) // it went while we looked
	default:
		f.fallBack(it)
		it.fail(err, now)
		it.stamp, it.settled, it.shared, f.changed = t.stamp, true, false, true
	}
}

// take makes a complete content the file's.
func (f *follower) take(it *file, t text, now time.Time) {
	it.stamp, it.settled, it.shared = t.stamp, t.stamp.settled(now), t.shared
	it.trouble, it.askAt, it.writingSince, it.draft = nil, time.Time{}, time.Time{}, draft{}
	f.changed = true
	switch {
	case it.heir != nil: // also of a content that is known under this name
	case it.runs != nil && it.digest == t.digest:
		it.back()
		return
	case it.there == t.digest:
		it.fallBehind(behindRefused, t.stamp.changed(now))
		return
	}
	decoded := f.opts.decode(t.data, it.path)
	// What was immutable in the content of before is so although podd was away.
	if decoded.Refused() || len(decoded.Objects.Origins) > 0 {
		f.fallBack(it)
	}
	version := t.stamp.version(now)
	if it.offer(decoded, t.digest, version, t.stamp.changed(now)) {
		f.cache.put(it.path, record{Digest: t.digest, Version: version.UTC()}, t.data)
	}
}

// fallBack finds what ran last of a file of which nothing is known: under its
// former name, or in the cache.
func (f *follower) fallBack(it *file) {
	if it.keeps() {
		return
	}
	if it.heir != nil {
		data, r, ok := f.cache.load(it.heir.path)
		if !ok {
			it.restore(it.heir.runs, it.heir.digest, it.heir.version)
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
