package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Options select the log to read and the entries to emit. Only Dir and Container are required.
type Options struct {
	// Dir is the absolute path of the pod's log directory.
	Dir string
	// Container is the name of the container.
	Container string
	// Attempt is the first attempt to read. Nil means the newest.
	Attempt *uint32
	// Previous selects the attempt before the one that Attempt selects. If that attempt has
	// no log, the newest earlier attempt with a log is selected.
	Previous bool
	// LaterAttempts reports whether Read also reads all attempts after the first one.
	LaterAttempts bool
	// Follow reports whether Read waits for more entries at the end of the log, and for the log
	// itself if it does not exist yet. Read stops after HasExited has returned true, or when the
	// context is done.
	Follow bool
	// Notifier wakes readers that follow. All readers should share one Notifier. If it is
	// nil, the reader uses a separate inotify instance.
	Notifier *Notifier
	// HasExited reports whether the container has exited and the runtime has reported the exit. If
	// exited is true, Read continues until the runtime has written the whole log and closed the
	// file. If exited is false, changed is a channel that is closed when the result may be
	// different. A nil HasExited means that the container never exits.
	HasExited func() (exited bool, changed <-chan struct{})
	// TailLines is the number of lines at the end of the log with which Read starts. Zero means
	// all lines; a negative number means that only later lines are emitted. Compressed files are
	// not searched for these lines.
	TailLines int
	// Since is the time before which entries are omitted. The zero Time omits none.
	Since time.Time
	// LimitBytes is the maximum number of bytes of text and newlines. Zero means no limit.
	LimitBytes int64
	// Stream selects the entries of one stream. "" selects both streams. Malformed lines are
	// always selected.
	Stream Stream
	// OnIdle is called after all available entries were emitted: before each wait, and at the end.
	// The function can flush a buffer. It may be nil.
	OnIdle func() error
	// OnFile is called with each file when Read continues with that file. At that time, all earlier
	// files were read, except lines that the runtime still writes to the previous file. Read keeps
	// both files open. It may be nil.
	OnFile func(f *os.File)
}

// ExitedWhenClosed returns a function for Options.HasExited that returns true when c is
// closed.
func ExitedWhenClosed(c <-chan struct{}) func() (exited bool, changed <-chan struct{}) {
	return func() (bool, <-chan struct{}) {
		select {
		case <-c:
			return true, nil
		default:
			return false, c
		}
	}
}

// maxWriteAfterExit is how long the runtime may still write to a log after the exit of its
// container, because there may be unread output in the container's pipes. containerd stops reading
// the pipes after 10 s. After maxWriteAfterExit the reader stops, even if a process still has the
// log open for writing.
const maxWriteAfterExit = 15 * time.Second

// maxWriteAfterRotation is how long the reader waits until the runtime has written its last lines to a
// file that was rotated. containerd writes them while it already writes the next lines to the new
// file.
const maxWriteAfterRotation = 2 * time.Second

// errLimitReached stops a reader after Options.LimitBytes bytes.
var errLimitReached = errors.New("the maximum number of bytes was reached")

// Read passes the entries of a container's log to emit, in the order of the files. It
// returns nil at the end of the log. It returns the error of emit, or ctx.Err() when the
// context is done. If there is no such log, it returns fs.ErrNotExist, unless Follow is
// set. The memory that Read needs does not depend on the length of the log or its lines.
//
// When a file is rotated, the runtime may still write some lines to the old file. Read waits for these
// lines, but if it must wait longer than maxWriteAfterRotation, it may emit them after the first lines
// of the new file.
func Read(ctx context.Context, o Options, emit func(Entry) error) error {
	if !filepath.IsLocal(o.Container) || filepath.Base(o.Container) != o.Container || o.Container == "." {
		return fmt.Errorf("reading the log of container %q: invalid container name", o.Container)
	}
	r := &reader{o: o, emit: emit, waiter: waiter{notifier: o.Notifier}, maxWriteAfterExit: maxWriteAfterExit}
	defer r.close()
	err := r.run(ctx)
	if errors.Is(err, errLimitReached) {
		err = nil
	}
	if o.OnIdle != nil {
		err = errors.Join(err, o.OnIdle())
	}
	return err
}
