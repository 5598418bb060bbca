package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"podd/manifest"
)

// publish emits the Batch if it differs from the last one.
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

// batch returns a Batch of the current state.
func (f *follower) batch() manifest.Batch {
	b := manifest.Batch{Source: f.path, Kind: manifest.KindFile, Problems: f.sourceProblems(), Complete: f.complete()}
	var running, going []*manifest.File
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		it := f.files[path]
		there := it.missingSince.IsZero()
		if there {
			b.Problems = append(b.Problems, it.fileProblems()...)
		}
		b.Files = append(b.Files, it.state())
		switch {
		case it.inUse == nil:
		case there:
			running = append(running, it.inUse)
		default:
			going = append(going, it.inUse)
		}
	}
	gather(&b, running, going)
	return b
}

// complete reports whether the absence of a pod means that it is not desired: all files
// were listed and read, or were found in the cache. A file that is being written when podd
// starts delays this by at most CheckFrequency.
func (f *follower) complete() bool {
	if f.last != nil && f.last.Complete {
		return true
	}
	unread := 0
	for _, it := range f.files {
		if it.inUse == nil && (!it.retryAt.IsZero() || it.mayRecover() || f.listErr != nil) {
			unread++
		}
	}
	if f.listErr != nil {
		return f.cache.known && unread == 0 && !f.mayMissUncached()
	}
	return f.listed && (unread == 0 || f.opts.Now().Sub(f.started) >= f.opts.CheckFrequency)
}

// mayMissUncached reports whether manifests may be missing that are not in the cache.
func (f *follower) mayMissUncached() bool {
	other, ok := errors.AsType[*placeError](f.listErr)
	return ok && other.missing == 0
}

// sourceProblems returns the Problems of the source as a whole.
func (f *follower) sourceProblems() []manifest.Problem {
	var problems []manifest.Problem
	problem := func(s manifest.Severity, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)})
	}
	if f.listErr != nil {
		severity, rest := manifest.Error, "podd waits for it"
		if f.hasContent() {
			rest = "using its last valid content"
		}
		if other, ok := errors.AsType[*placeError](f.listErr); ok && other.settles() {
			severity = manifest.Warning
		}
		problem(severity, "reading manifests: %v; %s", withoutPath(f.listErr), rest)
	} else if f.only != "" && len(f.files) == 0 {
		problem(manifest.Warning, "the file does not exist; podd waits for it")
	}
	if f.unsafe {
		problem(manifest.Warning, "users other than root can write to its directory and so run any pod as root; restrict it to root (chown root, chmod go-w)")
	}
	if f.remote {
		problem(manifest.Warning, "it is on a network file system, which does not report changes by other hosts; podd polls it every %v", min(pollEvery, f.opts.CheckFrequency))
	}
	if f.watchErr != nil {
		problem(manifest.Warning, "watching for changes: %v; podd polls every %v instead", f.watchErr, min(pollEvery, f.opts.CheckFrequency))
	}
	for _, s := range f.skipped {
		if s.isProblem {
			problems = append(problems, s.warning(f.path))
		}
	}
	return append(problems, f.cache.problems()...)
}
