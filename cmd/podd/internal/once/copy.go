package once

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"podd/runtime/logs"
)

// copying is the copying of one container's log, through all its attempts.
type copying struct {
	prefix string
	begun  chan struct{} // closed when there is something to read
	over   chan struct{} // closed when the container can write no more
	ended  chan struct{} // closed when everything was copied
	// begin and finish close begun and over; they may be called again.
	begin, finish func()
	tail          tail // for others only once ended is closed
}

func newCopying(prefix string) *copying {
	c := &copying{prefix: prefix, begun: make(chan struct{}), over: make(chan struct{}), ended: make(chan struct{})}
	c.begin = sync.OnceFunc(func() { close(c.begun) })
	c.finish = sync.OnceFunc(func() { close(c.over) })
	return c
}

// author tells the attempts of a container apart: what one began, another does
// not go on with.
type author struct {
	c       *copying
	attempt uint32
}

// copy copies until the container is over and all it wrote was read. With
// several containers lines are put together before they are written, so that
// their pieces do not mix; alone, a container's output passes through as it is.
func (o *output) copy(ctx context.Context, dir, name string, c *copying) error {
	var first uint32
	emit := func(e logs.Entry) error { return o.entry(c, e) }
	joiner := logs.Joiner{To: emit}
	if o.several {
		emit = joiner.Emit
	}
	err := logs.Read(ctx, logs.Options{
		Dir: dir, Container: name, Attempt: &first, Restarts: true,
		Follow: true, Notifier: &o.notifier, Ended: logs.Closed(c.over), Idle: o.flush,
	}, emit)
	if errors.Is(err, fs.ErrNotExist) { // it never ran
		err = nil
	}
	return errors.Join(err, joiner.Flush(), o.flush())
}

func (o *output) entry(c *copying, e logs.Entry) error {
	to := o.stdout
	if e.Stream == logs.Stderr || e.Malformed {
		to = o.stderr
	}
	c.tail.add(line{e.Attempt, e.Stream}, e.Text, !e.Partial)
	return to.write(author{c, e.Attempt}, c.prefix, e.Text, !e.Partial)
}

func (o *output) flush() error { return errors.Join(o.stdout.Flush(), o.stderr.Flush()) }
