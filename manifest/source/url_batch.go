package source

import (
	"fmt"

	"podd/manifest"
)

// publish emits the Batch if it differs from the last one. The first Batch waits for a
// response, up to a time limit (firstResponseWait).
func (f *urlFollower) publish() {
	if f.last == nil && !f.waiting && f.failed == nil && f.offered == "" {
		return
	}
	b := f.batch()
	if f.last != nil && sameBatch(*f.last, b) {
		return
	}
	f.last = &b
	f.emit(b)
}

// batch returns a Batch of the current state.
func (f *urlFollower) batch() manifest.Batch {
	b := manifest.Batch{
		Source: f.name, Kind: manifest.KindURL,
		Files: []manifest.FileState{f.state()}, Problems: append(f.sourceProblems(), f.problems...),
		Complete: f.listed || f.failed != nil && f.cache.known && f.inUse != nil,
	}
	if f.last != nil && f.last.Complete {
		b.Complete = true
	}
	if f.inUse != nil {
		gather(&b, []*manifest.File{f.inUse}, nil)
	}
	return b
}

// sourceProblems returns the Problems of the source as a whole.
func (f *urlFollower) sourceProblems() []manifest.Problem {
	var problems []manifest.Problem
	problem := func(s manifest.Severity, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: s, Path: f.name, Message: fmt.Sprintf(format, args...)})
	}
	rest := "no content is in use"
	switch {
	case f.inUse != nil && f.fromDisk:
		rest = "using the last valid content from the cache"
	case f.inUse != nil:
		rest = "using its last valid content"
	}
	switch {
	case f.failed != nil:
		problem(manifest.Error, "fetching manifests: %v; %s, and podd retries at least every %v", f.failed, rest, max(maxWait, f.opts.CheckFrequency))
	case f.waiting:
		problem(manifest.Warning, "fetching manifests: no response yet; %s", rest)
	}
	if f.exposed {
		problem(manifest.Warning, "all users can read its header file %q; remove that permission (chmod o-r)", f.opts.HeaderFile)
	}
	return append(problems, f.cache.problems()...)
}
