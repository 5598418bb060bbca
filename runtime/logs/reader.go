package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"podd/runtime/beneath"
)

// reader is one Read.
type reader struct {
	o    Options
	emit func(Entry) error
	wake wake
	dir  *beneath.Dir // the container's; nil until there is one

	// attempt is the first to read, once cur is set.
	attempt uint32
	queue   []*scanner // opened already, to be read after cur
	cur     *scanner
	// late is the file before cur: a runtime may still add to it.
	late *scanner
	// look says that there may be new files.
	look bool
	// lost counts how often cur was not found among the files.
	lost int

	lag time.Duration // how long what has ended may still be written down

	given int64 // bytes
	past  bool  // Since is past
}

func (r *reader) close() {
	r.wake.close()
	for _, s := range append(r.queue, r.cur, r.late) {
		if s != nil {
			s.f.Close()
		}
	}
	if r.dir != nil {
		r.dir.Close()
	}
}

func (r *reader) run(ctx context.Context) error {
	var over time.Time // when Ended said so
	for {
		// Asked before the rest is read, so that what was written by then is read.
		cur, written := r.cur, !over.IsZero() && r.beingWritten()
		if err := r.readOn(ctx); err != nil {
			return err
		}
		closed := r.cur == cur && !written
		if !r.o.Follow || !over.IsZero() && (closed || time.Since(over) >= r.lag) {
			return r.finish()
		}
		if r.o.Idle != nil {
			if err := r.o.Idle(); err != nil {
				return err
			}
		}
		finishing, err := r.await(ctx, over)
		if err != nil {
			return err
		}
		if finishing && over.IsZero() {
			over = time.Now()
		}
	}
}

// await waits for a change or, once the container is over, a moment.
func (r *reader) await(ctx context.Context, over time.Time) (finishing bool, err error) {
	if !over.IsZero() {
		r.look = true
		return true, pause(ctx, time.Since(over))
	}
	finishing, r.look, err = r.wake.wait(ctx, r.dir, r.o.Ended)
	return finishing, err
}

// readOn begins, if that was not done, and gives everything there is.
func (r *reader) readOn(ctx context.Context) error {
	if r.cur == nil {
		err := r.begin()
		if err != nil && (!r.o.Follow || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err != nil {
			r.o.Tail = 0 // whatever appears now is new
		}
	}
	return r.drain(ctx)
}

// beingWritten tells whether somebody, the runtime, may still add to a file that
// is open.
func (r *reader) beingWritten() bool {
	for _, s := range []*scanner{r.late, r.cur} {
		if s != nil && beingWritten(s.f) {
			return true
		}
	}
	return false
}

// drain gives everything there is.
func (r *reader) drain(ctx context.Context) error {
	for r.cur != nil {
		if err := r.giveOpen(ctx); err != nil || !r.look {
			return err
		}
		next, err := r.next()
		if err != nil {
			return err
		}
		if next == nil {
			r.look = false
			return nil
		}
		// Once more: with the next file there, the one before cur is complete,
		// and cur nearly so.
		err = r.giveOpen(ctx)
		if err == nil {
			err = r.finishLate()
		}
		if err != nil {
			next.f.Close()
			return err
		}
		r.late, r.cur = r.cur, next
	}
	return nil
}

// giveOpen emits what there is in the files that are open.
func (r *reader) giveOpen(ctx context.Context) error {
	if r.late != nil {
		if err := r.give(ctx, r.late); err != nil {
			return err
		}
	}
	return r.give(ctx, r.cur)
}

// give emits the entries of one file to its present end.
func (r *reader) give(ctx context.Context, s *scanner) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			again, err := s.startOver()
			if err != nil {
				return fmt.Errorf("reading the log %s: %w", s.f.Name(), err)
			}
			if again {
				continue
			}
			s.settle()
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.entry(e); err != nil {
			return err
		}
	}
}

// entry emits what the options ask for.
func (r *reader) entry(e Entry) error {
	if r.o.Stream != "" && e.Stream != r.o.Stream && !e.Malformed {
		return nil
	}
	if !r.past && !r.o.Since.IsZero() {
		if e.Malformed || e.Time().Before(r.o.Since) {
			return nil
		}
		r.past = true // logs are in order of time
	}
	n := int64(len(e.Text))
	if !e.Partial {
		n++
	}
	if left := r.o.Limit - r.given; r.o.Limit > 0 && n >= left {
		if n > left {
			e.Text, e.Partial = e.Text[:left], true
		}
		if err := r.emit(e); err != nil {
			return err
		}
		return errEnough
	}
	r.given += n
	return r.emit(e)
}

// finish gives what is left without a newline.
func (r *reader) finish() error {
	if err := r.finishLate(); err != nil {
		return err
	}
	r.late, r.cur = r.cur, nil
	return r.finishLate()
}

func (r *reader) finishLate() error {
	if r.late == nil {
		return nil
	}
	s := r.late
	r.late = nil
	defer s.f.Close()
	if e, ok := s.rest(); ok {
		return r.entry(e)
	}
	return nil
}
