package source

import (
	"path/filepath"
	"time"

	"podd/manifest"
)

// follower is one Run of a Dir and all that it knows. Its goroutine owns it.
type follower struct {
	*Dir
	emit   func(manifest.Batch)
	notify notifier
	cache  *cache

	files   map[string]*file // by path
	only    string           // as in place, when last looked
	dev     uint64           // of the directory last listed, 0 before
	targets []string         // directories that links lead to
	skipped []skip
	said    map[string]bool // names that were skipped aloud
	started time.Time

	touched  map[string]bool // paths named by events since the last look
	touchAll bool
	scanAt   time.Time // when to look at everything
	lost     error     // why the place cannot be listed; nil when it was
	deaf     error     // why changes are not told; nil when they are
	remote   bool
	unsafe   bool // others than root can write the place

	listed  bool // a full listing was seen
	changed bool // there may be something to publish
	last    *manifest.Batch
}

func newFollower(d *Dir, emit func(manifest.Batch)) *follower {
	f := &follower{
		Dir: d, emit: emit,
		notify: notifier{make: d.watcher},
		cache:  d.opts.cache(d.path),
		files:  map[string]*file{}, touched: map[string]bool{}, said: map[string]bool{},
		started: d.opts.Now(),
	}
	for _, path := range f.cache.paths() {
		f.files[path] = &file{content: content{path: path}, name: filepath.Base(path)}
	}
	if f.files[d.path] != nil {
		f.only = filepath.Base(d.path)
	}
	return f
}

// close ends what the follower started.
func (f *follower) close() {
	f.notify.close()
	f.cache.close()
}

// scanBy asks for a full look at t or earlier.
func (f *follower) scanBy(t time.Time) {
	if t.Before(f.scanAt) {
		f.scanAt = t
	}
}

// next is when to look again without a cause.
func (f *follower) next() time.Time {
	at := f.scanAt
	for _, file := range f.files {
		if !file.askAt.IsZero() && file.askAt.Before(at) {
			at = file.askAt
		}
	}
	return at
}

// look does what is due: everything, or only the files that were not complete.
func (f *follower) look(now time.Time) {
	if now.Before(f.scanAt) {
		f.askPending(now)
	} else {
		f.scan(now)
	}
	f.publish()
}

// askPending looks again at the files whose time has come.
func (f *follower) askPending(now time.Time) {
	p, err := openPlace(f.path, f.only != "")
	if err != nil {
		f.scanAt = now
		return
	}
	defer p.Close()
	for _, file := range f.files {
		if !file.askAt.IsZero() && !file.askAt.After(now) {
			f.ask(p, file, now)
		}
	}
}
