package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime/logs"
	"podd/server"
)

func (d *podd) logReader() logReader {
	return logReader{d.view.latest, render.Node{LogsDir: d.cfg.PodLogsDir}, d.logs}
}

// logReader finds the log of a pod's container.
type logReader struct {
	state    server.Viewer
	node     render.Node
	notifier *logs.Notifier // of all who follow
}

// Logs implements server.LogReader.
func (l logReader) Logs(ctx context.Context, req server.LogRequest, w io.Writer) error {
	o, err := l.options(req)
	if err != nil {
		return err
	}
	lines := batch{to: w}
	out := logs.Joiner{To: func(e logs.Entry) error { return lines.entry(e, req.Timestamps) }}
	o.Idle = lines.Flush
	err = logs.Read(ctx, *o, out.Emit)
	err = errors.Join(err, out.Flush(), lines.Flush())
	if errors.Is(err, fs.ErrNotExist) {
		return noLog(l.state.View().Pod(server.Key(req.Pod)), req)
	}
	return err
}

// options are how to read what is asked for.
func (l logReader) options(req server.LogRequest) (*logs.Options, error) {
	p := l.state.View().Pod(server.Key(req.Pod))
	if p == nil {
		return nil, noPod(req.Pod)
	}
	if err := checkContainer(p, req.Container); err != nil {
		return nil, server.NotFound(err.Error())
	}
	pod := &manifest.Pod{Key: req.Pod, UID: p.Pod.UID}
	first, runs := runningID(p, req.Container)
	follow := req.Follow && !req.Previous // what has ended is not added to
	o := &logs.Options{
		Dir: render.LogDirectory(pod, l.node), Container: req.Container,
		// The newest run that has ended is the newest of all in a back-off.
		Previous: req.Previous && runs, Follow: follow, Notifier: l.notifier, Tail: tail(req.Tail),
		Since: req.Since, Limit: req.Limit, Stream: logs.Stream(req.Stream),
	}
	if follow {
		o.Ended = l.ended(p, req.Container, first)
	}
	return o, nil
}

// tail: the reader takes 0 for all, the request a negative number.
func tail(n int64) int {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return -1
	}
	return int(min(n, 1<<30))
}

// batch gathers what is written until Flush, and holds a buffer only in between: most
// who follow wait. For one goroutine.
type batch struct {
	to  io.Writer
	buf *bufio.Writer // nil: nothing is held
}

// batches are buffers that hold nothing.
var batches = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}

// Write implements io.Writer.
func (b *batch) Write(p []byte) (int, error) {
	if b.buf == nil {
		b.buf = batches.Get().(*bufio.Writer)
		b.buf.Reset(b.to)
	}
	return b.buf.Write(p)
}

// Flush passes on what is held.
func (b *batch) Flush() error {
	if b.buf == nil {
		return nil
	}
	err := b.buf.Flush()
	b.buf.Reset(nil)
	batches.Put(b.buf)
	b.buf = nil
	return err
}

// entry writes one as a line, with its stamp in front if that is asked for.
func (b *batch) entry(e logs.Entry, stamp bool) error {
	if stamp && len(e.Stamp) > 0 {
		b.Write(e.Stamp) // an error comes again with the next write
		b.Write([]byte(" "))
	}
	_, err := b.Write(e.Text)
	if !e.Partial {
		_, err = b.Write([]byte("\n"))
	}
	return err
}

// ended tells whether the container of the ID first, or for "" the next to run,
// has ended, or its pod.
func (l logReader) ended(of *server.PodView, container, first string) func() (bool, <-chan struct{}) {
	return func() (bool, <-chan struct{}) {
		view := l.state.View()
		p := view.Pod(of.Key())
		if p == nil || p.Pod.UID != of.Pod.UID {
			return true, nil
		}
		id, runs := runningID(p, container)
		if first == "" {
			first = id
		}
		return !runs && first != "" || first != id, l.state.Changed(view.Revision)
	}
}

func runningID(p *server.PodView, container string) (id string, runs bool) {
	if c := statusOf(p, container); c != nil {
		return c.ContainerID, c.State.Running != nil
	}
	return "", false
}
