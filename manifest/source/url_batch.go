package source

import (
	"fmt"

	"podd/manifest"
)

// publish emits the Batch if it differs from the last emitted Batch. It emits the first Batch
// only after a response, or after firstResponseWait.
func (f *urlFollower) publish() {
	if f.lastBatch == nil && !f.isFirstResponseLate && f.fetchErr == nil && f.currentDigest == "" {
		return
	}
	b := f.newBatch()
	if f.lastBatch != nil && sameBatch(*f.lastBatch, b) {
		return
	}
	f.lastBatch = &b
	f.emit(b)
}

// newBatch returns a Batch of the current state.
func (f *urlFollower) newBatch() manifest.Batch {
	b := manifest.Batch{
		Source: f.name, Kind: manifest.KindURL,
		FileStates: []manifest.FileState{f.state()}, Problems: append(f.sourceProblems(), f.problems...),
		IsComplete: f.hasListed || f.fetchErr != nil && f.cache.isIndexComplete && f.inUse != nil,
	}
	if f.lastBatch != nil && f.lastBatch.IsComplete {
		b.IsComplete = true
	}
	if f.inUse != nil {
		addFiles(&b, []*manifest.File{f.inUse}, nil)
	}
	return b
}

// sourceProblems returns the Problems of requests, of the header file and of the cache.
func (f *urlFollower) sourceProblems() []manifest.Problem {
	var problems []manifest.Problem
	addProblem := func(s manifest.Severity, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: s, Path: f.name, Message: fmt.Sprintf(format, args...)})
	}
	consequence := "there is no earlier valid content, so no pods of this URL run"
	switch {
	case f.inUse != nil && f.isFromCache:
		consequence = "using the last valid content from the cache"
	case f.inUse != nil:
		consequence = "using the last valid content"
	}
	switch {
	case f.fetchErr != nil:
		addProblem(manifest.Error, "fetching manifests: %v; %s, and podd retries at least every %v", f.fetchErr, consequence, max(maxRequestInterval, f.opts.CheckFrequency))
	case f.isFirstResponseLate:
		addProblem(manifest.Warning, "fetching manifests: no response yet; %s", consequence)
	}
	if f.areHeadersExposed {
		addProblem(manifest.Warning, "all users can read the header file %q; remove that permission (chmod o-r)", f.opts.HeaderFile)
	}
	return append(problems, f.cache.problems()...)
}
