package source

import (
	"fmt"
	"maps"
	"slices"

	"podd/manifest"
)

// publish emits the Batch if it is another one than the last.
func (f *follower) publish() {
	if !f.changed {
		return
	}
	f.changed = false
	b := f.batch()
	if f.last != nil && sameBatch(*f.last, b) {
		return
	}
	f.last = &b
	f.emit(b)
}

// batch is everything that is known now.
func (f *follower) batch() manifest.Batch {
	b := manifest.Batch{Source: f.path, Kind: manifest.KindFile, Problems: f.tell(), Complete: f.complete()}
	var running, going []*manifest.File
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		it := f.files[path]
		there := it.goneSince.IsZero()
		if there {
			b.Problems = append(b.Problems, it.tell()...)
		}
		b.Files = append(b.Files, it.state())
		switch {
		case it.runs == nil:
		case there:
			running = append(running, it.runs)
		default:
			going = append(going, it.runs)
		}
	}
	gather(&b, running, going)
	return b
}

// complete says that a pod's absence means something: everything was listed and
// read, or was found in the cache. A file that is being written when podd
// starts is waited for, but not for ever.
func (f *follower) complete() bool {
	if f.last != nil && f.last.Complete {
		return true
	}
	unread := 0
	for _, it := range f.files {
		if it.runs == nil && (!it.askAt.IsZero() || it.passes() || f.lost != nil) {
			unread++
		}
	}
	if f.lost != nil {
		return f.cache.known && unread == 0
	}
	return f.listed && (unread == 0 || f.opts.Now().Sub(f.started) >= f.opts.CheckFrequency)
}

// tell returns the Problems of the source as a whole.
func (f *follower) tell() []manifest.Problem {
	var problems []manifest.Problem
	problem := func(s manifest.Severity, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)})
	}
	if f.lost != nil {
		rest := "podd waits for it"
		if f.holdsAny() {
			rest = "its last good content runs on"
		}
		problem(manifest.Error, "reading manifests: %v; %s", cause(f.lost), rest)
	} else if f.only != "" && len(f.files) == 0 {
		problem(manifest.Warning, "there is no such file; podd waits for it")
	}
	if f.unsafe {
		problem(manifest.Warning, "others than root can write its directory, and so run anything as root; give it to root alone (chown root, chmod go-w)")
	}
	if f.remote {
		problem(manifest.Warning, "it is on a network filesystem, which does not tell of changes made elsewhere; podd looks every %v", min(pollEvery, f.opts.CheckFrequency))
	}
	if f.deaf != nil {
		problem(manifest.Warning, "watching for changes: %v; podd looks every %v instead", f.deaf, min(pollEvery, f.opts.CheckFrequency))
	}
	for _, s := range f.skipped {
		if s.telling {
			problems = append(problems, s.warning(f.path))
		}
	}
	return append(problems, f.cache.problems()...)
}
