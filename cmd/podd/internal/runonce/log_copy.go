package runonce

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"podd/runtime/logs"
)

// A logCopy copies the logs of all attempts of one container.
type logCopy struct {
	prefix  string
	started chan struct{} // closed when the container may have a log
	stopped chan struct{} // closed when the container can no longer write
	copied  chan struct{} // closed when all logs are copied
	// begin closes started, and finish closes stopped. Both functions may be called several
	// times.
	begin, finish func()
	// current is the file that is being copied; nil before the first file. All earlier files have
	// been copied.
	current atomic.Pointer[fs.FileInfo]
	tail    tail // may be read by other goroutines after copied is closed
}

// newLogCopy returns a logCopy of a container without logs. Copying starts when begin is called.
// prefix is written before each line.
func newLogCopy(prefix string) *logCopy {
	c := &logCopy{prefix: prefix, started: make(chan struct{}), stopped: make(chan struct{}), copied: make(chan struct{})}
	c.begin = sync.OnceFunc(func() { close(c.started) })
	c.finish = sync.OnceFunc(func() { close(c.stopped) })
	return c
}

// setCurrent records that f is the file that is being copied.
func (c *logCopy) setCurrent(f *os.File) {
	if info, err := f.Stat(); err == nil {
		c.current.Store(&info)
	}
}

// isCopying reports whether the file at path is the file that is being copied.
func (c *logCopy) isCopying(path string) bool {
	info, err := os.Lstat(path)
	current := c.current.Load()
	return err == nil && current != nil && os.SameFile(info, *current)
}

// A lineAuthor identifies the attempt of a container that wrote the first part of a line. Another
// attempt must not continue the line.
type lineAuthor struct {
	c       *logCopy
	attempt uint32
}

// copyLog copies the log of a container until the container has stopped and the log is read to
// the end. If the run has several containers, copyLog writes only complete lines, so that lines
// of different containers do not mix. Otherwise it copies the output unchanged.
func (o *outputCopier) copyLog(ctx context.Context, dir, name string, c *logCopy) error {
	var firstAttempt uint32
	emit := func(e logs.Entry) error { return o.writeEntry(c, e) }
	joiner := logs.Joiner{Output: emit}
	if o.hasSeveralContainers {
		emit = joiner.Emit
	}
	err := logs.Read(ctx, logs.Options{
		Dir: dir, Container: name, Attempt: &firstAttempt, LaterAttempts: true,
		Follow: true, Notifier: &o.notifier, HasExited: logs.ExitedWhenClosed(c.stopped), OnIdle: o.flush, OnFile: c.setCurrent,
	}, emit)
	if errors.Is(err, fs.ErrNotExist) { // the container never ran
		err = nil
	}
	return errors.Join(err, joiner.Flush(), o.flush())
}

// writeEntry writes a log entry to stdout or stderr and adds it to the tail of c.
func (o *outputCopier) writeEntry(c *logCopy, e logs.Entry) error {
	to := o.stdout
	if e.Stream == logs.Stderr || e.Malformed {
		to = o.stderr
	}
	c.tail.add(lineSource{e.Attempt, e.Stream}, e.Text, !e.Partial)
	return to.write(lineAuthor{c, e.Attempt}, c.prefix, e.Text, !e.Partial)
}

// flush writes the buffered data of both streams.
func (o *outputCopier) flush() error { return errors.Join(o.stdout.Flush(), o.stderr.Flush()) }
