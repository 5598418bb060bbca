package logs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Options select what to read. Only Dir and Container are required.
type Options struct {
	// Dir is the pod's log directory, an absolute path.
	Dir string
	// Container is the container's name.
	Container string
	// Attempt is the attempt to read; nil means the newest.
	Attempt *uint32
	// Previous selects the newest attempt before that.
	Previous bool
	// Restarts continues with the attempts that follow.
	Restarts bool
	// Follow waits at the end for more, and for the log itself to be created, until Ended
	// returns true or the context is done.
	Follow bool
	// Notifier is shared by all readers that follow; nil: an own inotify instance.
	Notifier *Notifier
	// Ended reports whether the container has exited and the runtime knows it. Then the log
	// is read until the runtime has written all of it and closed it. Otherwise changed is
	// closed when the result may change. Nil: it never ends.
	Ended func() (ended bool, changed <-chan struct{})
	// Tail is the number of last lines to start with: zero means all, a negative number
	// none. Compressed files are not searched.
	Tail int
	// Since omits older entries; zero omits none.
	Since time.Time
	// Limit is the maximum number of bytes of text and newlines; zero: no limit.
	Limit int64
	// Stream selects one stream; "" means both. Malformed lines are emitted in any case.
	Stream Stream
	// Idle, if not nil, is called when everything available was emitted, before waiting for
	// more and at the end, so that the caller can flush a buffer.
	Idle func() error
}

// Closed returns a value for Options.Ended: the container has exited when c is closed.
func Closed(c <-chan struct{}) func() (bool, <-chan struct{}) {
	return func() (bool, <-chan struct{}) {
		select {
		case <-c:
			return true, nil
		default:
			return false, c
		}
	}
}

// lag is how long after the exit of a container its log may still be written: the runtime
// drains its pipes then, and containerd gives up after 10 s. It limits the wait for
// anything else that keeps the log open.
const lag = 15 * time.Second

// errEnough ends a reader that has reached its limit.
var errEnough = errors.New("enough")

// Read passes the entries of a container's log to emit, in the order of the files. It
// returns nil at the end of the log, the error of emit, ctx.Err() when the context is done,
// or fs.ErrNotExist if there is no such log (unless it follows). Its memory does not depend
// on the length of the log or its lines.
//
// While a runtime rotates a log it may write some last lines to the old file. These are
// emitted after the first ones of the new file.
func Read(ctx context.Context, o Options, emit func(Entry) error) error {
	if !filepath.IsLocal(o.Container) || filepath.Base(o.Container) != o.Container || o.Container == "." {
		return fmt.Errorf("reading the log of container %q: invalid container name", o.Container)
	}
	r := &reader{o: o, emit: emit, wake: wake{of: o.Notifier}, lag: lag}
	defer r.close()
	err := r.run(ctx)
	if errors.Is(err, errEnough) {
		err = nil
	}
	if o.Idle != nil {
		err = errors.Join(err, o.Idle())
	}
	return err
}
