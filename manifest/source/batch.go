package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
)

// publish emits the Batch if it differs from the last emitted Batch.
func (f *follower) publish() {
	if !f.mayHaveChanged {
		return
	}
	f.mayHaveChanged = false
	b := f.newBatch()
	if f.lastBatch != nil && sameBatch(*f.lastBatch, b) {
		return
	}
	f.lastBatch = &b
	f.emit(b)
}

// newBatch returns a Batch of the current state.
func (f *follower) newBatch() manifest.Batch {
	b := manifest.Batch{Source: f.path, Kind: manifest.KindFile, Problems: f.sourceProblems(), IsComplete: f.isComplete()}
	var present, missing []*manifest.File
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		file := f.files[path]
		isPresent := file.missingSince.IsZero()
		if isPresent {
			b.Problems = append(b.Problems, file.fileProblems()...)
		}
		fileState := file.state()
		fileState.IsMissing = !isPresent
		b.FileStates = append(b.FileStates, fileState)
		switch {
		case file.inUse == nil:
		case isPresent:
			present = append(present, file.inUse)
		default:
			missing = append(missing, file.inUse)
		}
	}
	addFiles(&b, present, missing)
	return b
}

// isComplete reports whether the Batch contains all desired pods, so that a pod which is not in the
// Batch is not desired. The Batch contains all desired pods after all files were listed and read,
// or were loaded from the cache. If a process is writing a listed file while podd starts, the Batch
// is incomplete for at most CheckFrequency.
func (f *follower) isComplete() bool {
	if f.lastBatch != nil && f.lastBatch.IsComplete {
		return true
	}
	unreadCount := 0
	for _, file := range f.files {
		if file.inUse == nil && (!file.retryAt.IsZero() || file.mayRecover() || f.listErr != nil) {
			unreadCount++
		}
	}
	if f.listErr != nil {
		return f.cache.isIndexComplete && unreadCount == 0 && !f.mayMissUncachedManifests()
	}
	return f.hasListed && (unreadCount == 0 || f.opts.Now().Sub(f.startedAt) >= f.opts.CheckFrequency)
}

// mayMissUncachedManifests reports whether manifests may be missing from the directory and from the
// cache. If so, podd cannot determine the pods of these manifests.
func (f *follower) mayMissUncachedManifests() bool {
	replacedErr, ok := errors.AsType[*replacedDirError](f.listErr)
	return ok && replacedErr.missingCount == 0
}

// sourceProblems returns the Problems that do not belong to a single file.
func (f *follower) sourceProblems() []manifest.Problem {
	var problems []manifest.Problem
	addProblem := func(s manifest.Severity, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)})
	}
	if f.listErr != nil {
		severity, consequence := manifest.Error, "there is no earlier valid content, so no pods of this source run, and podd retries"
		if f.hasContent() {
			consequence = "using the last valid content"
		}
		if replacedErr, ok := errors.AsType[*replacedDirError](f.listErr); ok && replacedErr.willBeAccepted() {
			severity = manifest.Warning
		}
		addProblem(severity, "reading manifests: %v; %s", withoutPath(f.listErr), consequence)
	} else if f.onlyFile != "" && len(f.files) == 0 {
		addProblem(manifest.Warning, "the file does not exist; podd waits for the file")
	}
	if f.isUntrusted {
		addProblem(manifest.Warning, "users other than root can write to the directory of the manifests and so run any pod as root; restrict the directory to root (chown root, chmod go-w)")
	}
	if f.isRemote {
		addProblem(manifest.Warning, "the manifests are on a network file system, which does not report changes by other hosts; podd polls the manifests every %v", min(scanInterval, f.opts.CheckFrequency))
	}
	if f.watchErr != nil {
		addProblem(manifest.Warning, "watching the manifests for changes: %v; podd polls them every %v instead", f.watchErr, min(scanInterval, f.opts.CheckFrequency))
	}
	for _, s := range f.skippedEntries {
		if s.isProblem {
			problems = append(problems, s.newProblem(f.path))
		}
	}
	return append(problems, f.cache.problems()...)
}

// addFiles adds the pods and objects of the files of one source to b, in the order of the files. If
// two pods have the same name, addFiles adds both, because package merge decides which pod is used.
// missingFiles contains files that no longer exist but that podd has not removed yet. Such a file may
// have been renamed, so addFiles adds a pod of the file only if presentFiles does not contain the
// pod.
func addFiles(b *manifest.Batch, presentFiles, missingFiles []*manifest.File) {
	var objects []manifest.Objects
	presentPods := map[types.NamespacedName]bool{}
	for _, f := range presentFiles {
		for _, p := range f.Pods {
			presentPods[p.Key] = true
			b.Pods = append(b.Pods, p)
		}
		objects = append(objects, f.Objects)
	}
	allObjects, problems := merge.Objects(objects...)
	for _, f := range missingFiles {
		for _, p := range f.Pods {
			if !presentPods[p.Key] {
				b.Pods = append(b.Pods, p)
			}
		}
		allObjects, _ = merge.Objects(allObjects, f.Objects)
	}
	b.Objects = allObjects
	b.Problems = append(b.Problems, problems...)
}

// sameBatch reports whether two Batches of one source are equal. It compares the pointers to pods
// and objects. This is sufficient because an unchanged file is not decoded again.
func sameBatch(a, b manifest.Batch) bool {
	return a.IsComplete == b.IsComplete &&
		slices.Equal(a.Pods, b.Pods) &&
		slices.Equal(a.Problems, b.Problems) &&
		slices.Equal(a.FileStates, b.FileStates) &&
		maps.Equal(a.Objects.ConfigMaps, b.Objects.ConfigMaps) &&
		maps.Equal(a.Objects.Secrets, b.Objects.Secrets) &&
		maps.Equal(a.Objects.Claims, b.Objects.Claims) &&
		maps.Equal(a.Objects.Volumes, b.Objects.Volumes) &&
		maps.Equal(a.Objects.TrustBundles, b.Objects.TrustBundles) &&
		maps.Equal(a.Objects.CSIDrivers, b.Objects.CSIDrivers)
}
