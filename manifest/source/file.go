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
	// stamp is of the content last looked at; while it stays and is settled,
	// the file is not opened.
	stamp   stamp
	settled bool
	birth   birth
	// trouble is why the file cannot be read; nil when it can.
	trouble error
	// writingSince and askAt are zero unless the file is not complete.
	writingSince time.Time
	askAt        time.Time
	draft        draft
	shared       bool // others than root may write it
	astray       bool // as in found
	// goneSince is zero while the file is in its directory.
	goneSince time.Time
	// heir is the file that this one was before it was renamed, or nil.
	heir *file
}

// patience is how long a file may be half written without a word.
const patience = 5 * time.Second

// due says that the file must be opened: it is another one than that last
// looked at, or may be.
func (f *file) due(now stamp, touched bool) bool {
	return touched || !f.settled || f.stamp != now || f.trouble != nil || !f.askAt.IsZero() ||
		f.behind != "" && f.behind != behindRefused
}

// wait notes that the file is not complete and when to ask again. It says
// whether there is something new to tell.
func (f *file) wait(now time.Time, draft bool) bool {
	if f.writingSince.IsZero() {
		f.writingSince = now
	}
	f.trouble = nil
	waited := now.Sub(f.writingSince)
	switch {
	case draft:
		f.askAt = now.Add(draftsApart)
	case waited < long:
		f.askAt = now.Add(askAgain)
	default:
		f.askAt = now.Add(askLater)
	}
	if waited < patience || f.behind == behindWriting {
		return false
	}
	f.fallBehind(behindWriting, f.writingSince)
	return true
}

// fail notes why the file cannot be read.
func (f *file) fail(err error, now time.Time) {
	f.trouble, f.writingSince, f.askAt = cause(err), time.Time{}, time.Time{}
	f.fallBehind(behindRead, now)
}

// passes says that the trouble may go without anybody's doing.
func (f *file) passes() bool {
	err := f.trouble
	return err != nil && !errors.Is(err, errIrregular) && !errors.Is(err, errTooBig) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, errAnyone) && !errors.Is(err, errAstray)
}

// tell returns the Problems of the file.
func (f *file) tell() []manifest.Problem {
	own := f.problems
	problem := func(s manifest.Severity, format string, args ...any) {
		p := manifest.Problem{Severity: s, Path: f.path, Message: fmt.Sprintf(format, args...)}
		own = append(own[:len(own):len(own)], p)
	}
	rest := "nothing of it runs"
	if f.runs != nil && holds(f.runs) {
		rest = "its last good content runs on"
	}
	switch {
	case f.trouble != nil:
		problem(manifest.Error, "reading it: %v; %s", f.trouble, rest)
	case f.behind == behindWriting:
		problem(manifest.Warning, "a program has it open for writing; %s until it is closed", rest)
	}
	if f.shared {
		problem(manifest.Warning, "others than root can write it, and so run anything as root; give it to root alone (chown root, chmod go-w)")
	}
	if f.astray {
		problem(manifest.Warning, "it is a link into a directory that others than root can write, and so run anything as root; give that to root alone (chown root, chmod go-w)")
	}
	return own
}

// cause is an error without the path, which the Problem has already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
