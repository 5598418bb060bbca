// Package podlog reads the logs of containers, and lists the logs to rotate.
package podlog

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"podd/cmd/podd/internal/containers"
	"podd/runtime/logs"
	"podd/server"
)

// A Reader reads the logs of containers of pods. It implements server.LogReader.
type Reader struct {
	state    server.Viewer
	dir      string         // directory with the logs of all pods
	notifier *logs.Notifier // may be nil
}

// NewReader returns a Reader of the logs in dir. notifier is shared by all clients that
// follow a log.
func NewReader(state server.Viewer, dir string, notifier *logs.Notifier) *Reader {
	return &Reader{state, dir, notifier}
}

// Logs implements server.LogReader.
func (l *Reader) Logs(ctx context.Context, req server.LogRequest, w io.Writer) error {
	o, err := l.options(req)
	if err != nil {
		return err
	}
	lines := lineBuffer{to: w}
	out := logs.Joiner{Output: func(e logs.Entry) error { return lines.writeEntry(e, req.Timestamps) }}
	o.OnIdle = lines.Flush
	err = logs.Read(ctx, *o, out.Emit)
	err = errors.Join(err, out.Flush(), lines.Flush())
	if errors.Is(err, fs.ErrNotExist) {
		return newNoLogError(l.state.View().Pod(server.Key(req.Pod)), req)
	}
	return err
}

// options returns the options for reading the requested log.
func (l *Reader) options(req server.LogRequest) (*logs.Options, error) {
	p := l.state.View().Pod(server.Key(req.Pod))
	if p == nil {
		return nil, NewNoPodError(req.Pod)
	}
	if err := containers.CheckExists(p, req.Container); err != nil {
		return nil, server.NewNotFoundError(err.Error())
	}
	firstID, isRunning := newestContainerID(p, req.Container)
	follow := req.Follow && !req.Previous // do not follow a previous log, because no more lines are added to it
	o := &logs.Options{
		Dir: logs.Dir(l.dir, req.Pod, p.Pod.UID), Container: req.Container,
		// During a back-off, the log of the last run, which has exited, is the newest log and not a
		// previous log.
		Previous: req.Previous && isRunning, Follow: follow, Notifier: l.notifier, TailLines: convertTailLines(req.Tail),
		Since: req.Since, LimitBytes: req.Limit, Stream: logs.Stream(req.Stream),
	}
	if follow {
		o.HasExited = l.newExitedFunc(p, req.Container, firstID)
	}
	return o, nil
}

// convertTailLines converts a number of lines. In a request, a negative number means all lines. In
// package logs, 0 means all lines and -1 means none.
func convertTailLines(n int64) int {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return -1
	}
	return int(min(n, 1<<30))
}

// A lineBuffer buffers writes until Flush. It allocates its buffer with the first write and
// releases the buffer in Flush, because most clients that follow a log are idle and need no buffer.
// It is not safe for concurrent use.
type lineBuffer struct {
	to  io.Writer
	buf *bufio.Writer // nil if the buffer is empty
}

// bufferPool contains empty buffers.
var bufferPool = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}

// Write implements io.Writer.
func (b *lineBuffer) Write(p []byte) (int, error) {
	if b.buf == nil {
		b.buf = bufferPool.Get().(*bufio.Writer)
		b.buf.Reset(b.to)
	}
	return b.buf.Write(p)
}

// Flush writes the buffered data.
func (b *lineBuffer) Flush() error {
	if b.buf == nil {
		return nil
	}
	err := b.buf.Flush()
	b.buf.Reset(nil)
	bufferPool.Put(b.buf)
	b.buf = nil
	return err
}

// writeEntry writes an entry as a line, prefixed by its timestamp if stamp is set.
func (b *lineBuffer) writeEntry(e logs.Entry, stamp bool) error {
	if stamp && len(e.Timestamp) > 0 {
		b.Write(e.Timestamp) // the error is ignored, because the next write returns it, too
		b.Write([]byte(" "))
	}
	_, err := b.Write(e.Text)
	if !e.Partial {
		_, err = b.Write([]byte("\n"))
	}
	return err
}

// newExitedFunc returns a function that reports whether a container has exited or the pod was
// deleted. firstID is the ID of the container. If firstID is "", the function reports on the first
// container that a View contains, and returns false until then. The channel changed is closed when the
// result may have changed.
func (l *Reader) newExitedFunc(pod *server.PodView, container, firstID string) func() (exited bool, changed <-chan struct{}) {
	return func() (bool, <-chan struct{}) {
		view := l.state.View()
		p := view.Pod(pod.Key())
		if p == nil || p.Pod.UID != pod.Pod.UID {
			return true, nil
		}
		id, isRunning := newestContainerID(p, container)
		if firstID == "" {
			firstID = id
		}
		return !isRunning && firstID != "" || firstID != id, l.state.Changed(view.Revision)
	}
}

// newestContainerID returns the ID of the newest run of a container, and whether this run is
// running. id is "" if the container has never run.
func newestContainerID(p *server.PodView, container string) (id string, isRunning bool) {
	if c := containerStatus(p, container); c != nil {
		return c.ContainerID, c.State.Running != nil
	}
	return "", false
}
