package source

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// scan looks at everything.
func (f *follower) scan(now time.Time) {
	f.scanAt = now.Add(f.opts.CheckFrequency)
	f.changed = true
	f.listen()
	f.cache.retry()
	err := f.list(now)
	clear(f.touched)
	f.touchAll = false
	if err != nil {
		f.lose(err, now)
	}
	f.lost = err
	if f.listen() { // only now: what happened there meanwhile is not known
		f.scanBy(now.Add(settle))
	}
	if f.deaf != nil || f.lost != nil || f.remote || f.troubled() {
		f.scanBy(now.Add(pollEvery))
	}
}

// listen watches what is to be watched, and says whether that is new.
func (f *follower) listen() bool {
	fresh, err := f.notify.watch(f.directories())
	f.deaf = err
	return fresh
}

// list reads the place and every file in it that changed.
func (f *follower) list(now time.Time) error {
	p, err := openPlace(f.path, f.only != "")
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := p.list(now)
	if err != nil {
		return err
	}
	dev := stampOf(p.dir).dev
	if len(l.files) == 0 && f.dev != 0 && f.dev != dev && f.holdsAny() {
		return errEmptied
	}
	f.only, f.dev, f.remote, f.unsafe, f.targets = p.only, dev, p.remote, !p.trusted, p.targets(l)
	f.skip(p, l.skipped)
	there := map[string]bool{}
	for _, found := range l.files {
		there[filepath.Join(p.path, found.name)] = true
	}
	f.miss(there, now)
	for _, found := range l.files {
		f.see(p, found, now)
	}
	if !f.listed {
		f.listed = true
		f.cache.listed()
	}
	return nil
}

var errEmptied = errors.New("another filesystem is at its place, with no manifest; is it unmounted? A restart of podd takes it as it is")

// see looks at one file that is there.
func (f *follower) see(p *place, found found, now time.Time) {
	path := filepath.Join(p.path, found.name)
	it := f.files[path]
	if it == nil {
		it = &file{content: content{path: path}, name: found.name}
		f.files[path] = it
	}
	if !it.keeps() {
		it.heir = f.renamed(path)
	}
	it.goneSince, it.link, it.astray = time.Time{}, found.link, found.astray
	touched := f.touchAll || f.touched[path] || found.link && len(f.touched) > 0
	switch {
	case found.err != nil:
		f.fallBack(it)
		it.fail(found.err, now)
	case it.due(found.stamp, touched):
		f.ask(p, it, now)
	}
}

// renamed finds the missing file that is now at this path.
func (f *follower) renamed(path string) *file {
	var b birth
	for _, it := range f.files {
		if it.goneSince.IsZero() || !it.keeps() || it.birth == (birth{}) {
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

// miss lets go of the files that are not there any more: those that ran
// nothing at once, the others when they do not come back.
func (f *follower) miss(there map[string]bool, now time.Time) {
	for path, it := range f.files {
		switch {
		case there[path]:
		case it.runs == nil || !it.goneSince.IsZero() && now.Sub(it.goneSince) >= f.hold:
			delete(f.files, path)
			f.cache.drop(path)
		default:
			if it.goneSince.IsZero() {
				it.goneSince, it.askAt = now, time.Time{}
			}
			f.scanBy(it.goneSince.Add(f.hold))
		}
	}
}

// lose keeps everything while the place cannot be listed.
func (f *follower) lose(err error, now time.Time) {
	why := behindRead
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmptied) {
		why = behindGone
	}
	for _, it := range f.files {
		f.fallBack(it)
		it.goneSince, it.askAt, it.writingSince = time.Time{}, time.Time{}, time.Time{}
		it.fallBehind(why, now)
	}
}

// holdsAny says that something runs of some file.
func (f *follower) holdsAny() bool {
	for it := range maps.Values(f.files) {
		if it.runs != nil && holds(it.runs) {
			return true
		}
	}
	return false
}

// troubled says that some file may become readable without an event.
func (f *follower) troubled() bool {
	for it := range maps.Values(f.files) {
		if it.passes() {
			return true
		}
	}
	return false
}

// skip says once what is not read.
func (f *follower) skip(p *place, skipped []skip) {
	f.skipped = skipped
	for _, s := range skipped {
		if !f.said[s.name] && len(f.said) < maxSaid {
			f.said[s.name] = true
			f.opts.Log.Info("manifest not read", "path", filepath.Join(p.path, s.name), "why", s.why)
		}
	}
}

// maxSaid bounds what is remembered of names that come and go.
const maxSaid = 1000
