package source

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"podd/manifest"
)

// file is one file of a Dir.
type file struct {
	content
	name string
	link bool
	// stamp is that of the content that was read last. While it is unchanged and settled,
	// the file is not opened.
	stamp   stamp
	settled bool
	birth   birth
	// readErr is the error of the last read; nil if it succeeded.
	readErr error
	// writingSince and retryAt are zero unless the file is incomplete.
	writingSince time.Time
	retryAt      time.Time
	draft        draft
	shared       bool // a user other than root can write the file
	astray       bool // as in found
	// missingSince is zero while the file is in its directory.
	missingSince time.Time
	// seenIn is the directory in which the file was found last in this run of podd.
	seenIn identity
	// renamedFrom is the entry of the file before it was renamed, or nil.
	renamedFrom *file
}

// incompleteLimit is how long a file may be incomplete before it is reported.
const incompleteLimit = 5 * time.Second

// mustRead reports whether the file must be opened, because its content has changed or may
// have.
func (f *file) mustRead(now stamp, touched bool) bool {
	return touched || !f.settled || f.stamp != now || f.readErr != nil || !f.retryAt.IsZero() ||
		f.behind != "" && f.behind != behindRefused
}

// setIncomplete records that the file is incomplete, and schedules the next attempt. It reports
// whether the state to publish has changed.
func (f *file) setIncomplete(now time.Time, draft bool) bool {
	if f.writingSince.IsZero() {
		f.writingSince = now
	}
	f.readErr = nil
	waited := now.Sub(f.writingSince)
	switch {
	case draft:
		f.retryAt = now.Add(draftsApart)
	case waited < writingLong:
		f.retryAt = now.Add(retryShort)
	default:
		f.retryAt = now.Add(retryLong)
	}
	if waited < incompleteLimit || f.behind == behindWriting {
		return false
	}
	f.fallBehind(behindWriting, f.writingSince)
	return true
}

// setError records why the file cannot be read.
func (f *file) setError(err error, now time.Time) {
	f.readErr, f.writingSince, f.retryAt = withoutPath(err), time.Time{}, time.Time{}
	f.fallBehind(behindRead, now)
}

// mayRecover reports whether the error may disappear without a change of the file.
func (f *file) mayRecover() bool {
	err := f.readErr
	return err != nil && !errors.Is(err, errIrregular) && !errors.Is(err, errTooBig) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, errAnyone) && !errors.Is(err, errAstray)
}

// fileProblems returns the Problems of the file.
func (f *file) fileProblems() []manifest.Problem {
	own := f.problems
	problem := func(s manifest.Severity, format string, args ...any) {
		p := manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)}
		own = append(own[:len(own):len(own)], p)
	}
	rest := "no content is in use"
	if f.inUse != nil && hasObjects(f.inUse) {
		rest = "using its last valid content"
	}
	switch {
	case f.readErr != nil:
		problem(manifest.Error, "reading the file: %v; %s", f.readErr, rest)
	case f.behind == behindWriting:
		problem(manifest.Warning, "a process has it open for writing; %s until it is closed", rest)
	}
	if f.shared {
		problem(manifest.Warning, "users other than root can write to it and so run any pod as root; restrict it to root (chown root, chmod go-w)")
	}
	if f.astray {
		problem(manifest.Warning, "it is a link into a directory to which users other than root can write and so run any pod as root; restrict that directory to root (chown root, chmod go-w)")
	}
	return own
}

// withoutPath returns err without the path, because the Problem already has it.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
