package source

import (
	"fmt"
	"slices"
	"time"
)

// settleDelay is how long a directory that has replaced another directory must be unchanged before
// podd accepts it. After it has accepted the directory, podd removes the pods of the missing
// manifests. The delay is necessary because a program may still be copying manifests into the
// directory.
const settleDelay = 10 * time.Second

// replacedDirError is the error for a directory that is not the directory which contained the
// missing manifests. A user may not have removed these manifests: the filesystem may not be
// mounted, or the directory may have been created again.
type replacedDirError struct {
	path string
	// isRecorded reports whether podd has recorded the identity of the directory that contained the
	// manifests. isUnmounted reports whether that directory was a mount point and this directory is
	// not.
	isRecorded, isUnmounted bool
	// mayHaveUnreadIndex reports whether the index could not be read and no user has accepted the
	// directory. In this case podd cannot determine which manifests are missing from the directory.
	mayHaveUnreadIndex bool
	// presentCount is the number of manifests in the directory. missingCount is the number of
	// manifests that the directory no longer contains.
	presentCount, missingCount int
}

// willBeAccepted reports whether podd accepts the directory, without a user's action, after it
// has been unchanged for settleDelay.
func (e *replacedDirError) willBeAccepted() bool {
	return e.isRecorded && !e.isUnmounted && e.presentCount > 0
}

func (e *replacedDirError) Error() string {
	reason := "podd has not recorded the identity of the directory that contained the manifests"
	switch {
	case e.isUnmounted:
		reason = "the file system with the manifests is not mounted"
	case e.isRecorded:
		reason = "this is not the directory from which podd has read the manifests"
	case e.mayHaveUnreadIndex:
		reason = "podd cannot read its stored list of the manifests"
	}
	if e.presentCount == 0 {
		return fmt.Sprintf("the directory is empty, and %s; restore the manifests, or stop their pods with: podd accept empty %s", reason, e.path)
	}
	countText := fmt.Sprintf("%d manifests are missing", e.missingCount)
	if e.missingCount == 1 {
		countText = "1 manifest is missing"
	}
	remedy := fmt.Sprintf("restore them, or stop their pods with: podd accept empty %s", e.path)
	if e.willBeAccepted() {
		remedy = fmt.Sprintf("podd stops their pods after the directory has not changed for %v; to stop them now, run: podd accept empty %s", settleDelay, e.path)
	}
	return fmt.Sprintf("%s, and %s; %s", reason, countText, remedy)
}

// pendingDir is a directory that podd has not accepted yet, with its manifests.
type pendingDir struct {
	id    identity
	files []manifestEntry
	since time.Time // time at which podd first listed exactly these files
}

// recognize returns a replacedDirError if manifests are missing from dir and dir is not the
// directory that contained them. Otherwise it returns nil and records dir as the directory of the
// manifests. presentPaths contains the paths of the manifests in dir. recognize accepts a directory:
//
//   - if a user accepts it, or no manifest is missing from it;
//   - if it contains a manifest, has been unchanged for settleDelay, and is not the mount point of
//     a filesystem that is not mounted;
//   - if it contains a manifest, and podd has not recorded which directory contained the missing
//     manifests.
//
// recognize does not accept an empty directory if the cache cannot be read, because the cache may
// contain missing manifests. It does not accept an empty mount point whose filesystem is not
// mounted, even if the cache contains no missing manifest: podd stores the identity of a directory
// before the contents of its files, and the host may have stopped between these two writes.
func (f *follower) recognize(dir *manifestDir, l *listing, presentPaths map[string]bool, now time.Time) *replacedDirError {
	isRecorded, recordedID := f.cache.isRecordedDir(dir.id)
	e := &replacedDirError{
		path: f.path, isRecorded: recordedID != nil, isUnmounted: recordedID != nil && recordedID.IsMount && !dir.id.IsMount,
		mayHaveUnreadIndex: f.cache.mayHaveUnreadIndex && !f.cache.hasAcceptedEmpty, presentCount: len(presentPaths), missingCount: f.countMissing(presentPaths, dir.id),
	}
	switch {
	case f.hasUserAcceptedDir:
		f.cache.recordAccepted(&dir.id)
	case isRecorded:
		f.cache.setManifestDir(&dir.id) // record the identity again, because the device number may have changed at a reboot
	case e.presentCount == 0 && (e.missingCount > 0 || e.mayHaveUnreadIndex || e.isUnmounted):
		return e
	case e.presentCount == 0:
	case e.isRecorded && e.missingCount > 0 && (e.isUnmounted || !f.isSettled(dir, l, now)):
		return e
	default:
		f.cache.setManifestDir(&dir.id)
	}
	f.pendingDir = pendingDir{}
	return nil
}

// countMissing returns the number of files that are not in presentPaths and have a pod or object in
// use, or content in the cache. It does not count files that podd last found in the directory with
// this identity.
func (f *follower) countMissing(presentPaths map[string]bool, id identity) int {
	n := 0
	for path, file := range f.files {
		hasContent := file.inUse != nil && hasObjects(file.inUse) || file.inUse == nil && f.cache.hasContent(path)
		if hasContent && !presentPaths[path] && file.lastDir != id {
			n++
		}
	}
	return n
}

// isSettled reports whether the manifests in the directory have been unchanged for settleDelay.
func (f *follower) isSettled(dir *manifestDir, l *listing, now time.Time) bool {
	isUnchanged := f.pendingDir.id == dir.id && slices.EqualFunc(f.pendingDir.files, l.files, func(a, b manifestEntry) bool {
		return a.name == b.name && a.stamp == b.stamp
	})
	if !isUnchanged {
		f.pendingDir = pendingDir{dir.id, l.files, now}
	}
	return now.Sub(f.pendingDir.since) >= f.settleDelay
}
