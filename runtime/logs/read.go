package logs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Options say what to read. Only Dir and Container are required.
type Options struct {
	// Dir is the pod's log directory, an absolute path.
	Dir string
	// Container is its name.
	Container string
	// Attempt is which one to read; nil means the newest there is.
	Attempt *uint32
	// Previous means the newest attempt before that.
	Previous bool
	// Restarts goes on with the attempts that follow.
	Restarts bool
	// Follow waits for more at the end, and for the log itself to appear, until
	// Ended says so or the context ends.
	Follow bool
	// Notifier is shared by all who follow; nil: an inotify instance of its own.
	Notifier *Notifier
	// Ended says whether the container has exited, and the runtime knows; then the
	// log is read until the runtime has written all of it and closed it. Else
	// changed is closed once it may have. Nil: never.
	Ended func() (ended bool, changed <-chan struct{})
	// Tail is how many lines to begin with, counted from the end: zero means
	// all, a negative number none. Compressed files are not gone back into.
	Tail int
	// Since leaves out what is older; zero leaves out nothing.
	Since time.Time
	// Limit is how many bytes of text and newlines to read; zero: no limit.
	Limit int64
	// Stream is which one to read; "" means both. What is malformed is given in
	// any case.
	Stream Stream
	// Idle, if not nil, is called when everything there is was given, before
	// waiting for more and at the end: the moment to flush a buffer.
	Idle func() error
}

// Closed is an Ended that says so once a channel is closed.
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

// lag is how long after the end of a container its log may be written to: a
// runtime empties its pipes only then, and containerd gives up after 10 s. It
// bounds what else could keep a log open.
const lag = 15 * time.Second

// errEnough ends a reading that has reached its limit.
var errEnough = errors.New("enough")

// Read gives the entries of a container's log to emit, in order, as the files
// have them. It returns nil at the end of the log, emit's error when that has
// one, ctx.Err() when the context ends, and fs.ErrNotExist when there is no such
// log (unless it follows). It uses little memory however long the log or its
// lines are.
//
// While a runtime rotates a log it may write some last lines to the old file;
// these come after the first ones of the new file.
func Read(ctx context.Context, o Options, emit func(Entry) error) error {
	if !filepath.IsLocal(o.Container) || filepath.Base(o.Container) != o.Container || o.Container == "." {
		return fmt.Errorf("reading the log of container %q: this is no container's name", o.Container)
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
