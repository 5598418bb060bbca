package source

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"podd/manifest"
)

// trackedFile is the state of one manifest file of a Dir.
type trackedFile struct {
	content
	name   string
	isLink bool
	// stamp is the stamp of the file when it was last read. While the stamp is unchanged and
	// isSettled is true, podd does not open the file.
	stamp     stamp
	isSettled bool
	birth     birth
	// readErr is the error of the last read; nil if it succeeded.
	readErr error
	// writingSince and retryAt are zero unless the file is incomplete.
	writingSince   time.Time
	retryAt        time.Time
	firstRead      firstRead
	othersCanWrite bool // a user other than root can write to the file
	hasUnsafeLink  bool // as in manifestEntry
	// missingSince is the time of the first listing that did not contain the file; zero while the
	// file exists.
	missingSince time.Time
	// lastDir is the directory in which this process last found the file.
	lastDir identity
	// renamedFrom is the state of the file under its former name; nil if it was not renamed.
	renamedFrom *trackedFile
}

// maxIncompleteTime is how long a file may be incomplete before this becomes a Problem.
const maxIncompleteTime = 5 * time.Second

// mustRead reports whether the file must be read, because its content may have changed. The
// parameter current is the current stamp of the file. isTouched reports whether an event named the
// file.
func (f *trackedFile) mustRead(current stamp, isTouched bool) bool {
	return isTouched || !f.isSettled || f.stamp != current || f.readErr != nil || !f.retryAt.IsZero() ||
		f.outdatedReason != "" && f.outdatedReason != outdatedRefused
}

// setIncomplete records that the file is incomplete, and schedules the next read. needsSecondRead is
// true if the file must be read twice with equal results. It is false if a process has the file open
// for writing. setIncomplete reports whether the Batch has changed.
func (f *trackedFile) setIncomplete(now time.Time, needsSecondRead bool) (changed bool) {
	if f.writingSince.IsZero() {
		f.writingSince = now
	}
	f.readErr = nil
	elapsed := now.Sub(f.writingSince)
	switch {
	case needsSecondRead:
		f.retryAt = now.Add(secondReadDelay)
	case elapsed < longWriteAfter:
		f.retryAt = now.Add(shortRetryDelay)
	default:
		f.retryAt = now.Add(longRetryDelay)
	}
	if elapsed < maxIncompleteTime || f.outdatedReason == outdatedWriting {
		return false
	}
	f.setOutdated(outdatedWriting, f.writingSince)
	return true
}

// setError records the reason why the file cannot be read.
func (f *trackedFile) setError(err error, now time.Time) {
	f.readErr, f.writingSince, f.retryAt = withoutPath(err), time.Time{}, time.Time{}
	f.setOutdated(outdatedRead, now)
}

// mayRecover reports whether a read of the file may succeed later although the file does not
// change. It is false if the last read succeeded.
func (f *trackedFile) mayRecover() bool {
	err := f.readErr
	return err != nil && !errors.Is(err, errNotRegular) && !errors.Is(err, errTooLarge) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, errWorldWritable) && !errors.Is(err, errUnsafeLink)
}

// fileProblems returns the Problems of the file.
func (f *trackedFile) fileProblems() []manifest.Problem {
	problems := f.problems
	addProblem := func(s manifest.Severity, format string, args ...any) {
		p := manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)}
		problems = append(problems[:len(problems):len(problems)], p)
	}
	consequence := "there is no earlier valid content, so no pods of this file run"
	if f.inUse != nil && hasObjects(f.inUse) {
		consequence = "using the last valid content"
	}
	switch {
	case f.readErr != nil:
		addProblem(manifest.Error, "reading the file: %v; %s", f.readErr, consequence)
	case f.outdatedReason == outdatedWriting:
		addProblem(manifest.Warning, "a process has the file open for writing; %s until the process closes the file", consequence)
	}
	if f.othersCanWrite {
		addProblem(manifest.Warning, "users other than root can write to the file and so run any pod as root; restrict the file to root (chown root, chmod go-w)")
	}
	if f.hasUnsafeLink {
		addProblem(manifest.Warning, "the file is a link into a directory to which users other than root can write and so run any pod as root; restrict that directory to root (chown root, chmod go-w)")
	}
	return problems
}

// withoutPath returns err without the path of the file, because the caller's message already
// contains the path.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
