package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"podd/runtime/safepath"
)

// reader is the state of one Read.
type reader struct {
	o    Options
	emit func(Entry) error
	wake wake
	dir  *safepath.Dir // the container's; nil until it exists

	// attempt is the first to read, set together with cur.
	attempt uint32
	queue   []*scanner // already open, to be read after cur
	cur     *scanner
	// late is the file before cur, to which a runtime may still write.
	late *scanner
	// relist reports that there may be new files.
	relist bool
	// lost counts how often cur was not found in the listing.
	lost int

	lag time.Duration // how long the log may be written after the exit

	emitted   int64 // bytes
	pastSince bool  // an entry newer than Since was found
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
	var over time.Time // when Ended returned true
	for {
		// Checked before the rest is read, so that everything written until then is read.
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

// await waits for a change or, after the container has exited, for a moment.
func (r *reader) await(ctx context.Context, over time.Time) (finishing bool, err error) {
	if !over.IsZero() {
		r.relist = true
		return true, pause(ctx, time.Since(over))
	}
	finishing, r.relist, err = r.wake.wait(ctx, r.dir, r.o.Ended)
	return finishing, err
}

// readOn opens the first file if necessary, and emits everything available.
func (r *reader) readOn(ctx context.Context) error {
	if r.cur == nil {
		err := r.begin()
		if err != nil && (!r.o.Follow || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err != nil {
			r.o.Tail = 0 // everything that appears now is new
		}
	}
	return r.drain(ctx)
}

// beingWritten reports whether a process, usually the runtime, may still write to an open
// file.
func (r *reader) beingWritten() bool {
	for _, s := range []*scanner{r.late, r.cur} {
		if s != nil && beingWritten(s.f) {
			return true
		}
	}
	return false
}

// drain emits everything available.
func (r *reader) drain(ctx context.Context) error {
	for r.cur != nil {
		if err := r.emitOpenFiles(ctx); err != nil || !r.relist {
			return err
		}
		next, err := r.next()
		if err != nil {
			return err
		}
		if next == nil {
			r.relist = false
			return nil
		}
		// Once more: when the next file exists, the one before cur is complete, and cur
		// nearly.
		err = r.emitOpenFiles(ctx)
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

// emitOpenFiles emits the available entries of the open files.
func (r *reader) emitOpenFiles(ctx context.Context) error {
	if r.late != nil {
		if err := r.emitFile(ctx, r.late); err != nil {
			return err
		}
	}
	return r.emitFile(ctx, r.cur)
}

// emitFile emits the entries of one file up to its current end.
func (r *reader) emitFile(ctx context.Context, s *scanner) error {
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
			s.releaseBuffer()
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

// entry emits an entry if the options select it.
func (r *reader) entry(e Entry) error {
	if r.o.Stream != "" && e.Stream != r.o.Stream && !e.Malformed {
		return nil
	}
	if !r.pastSince && !r.o.Since.IsZero() {
		if e.Malformed || e.Time().Before(r.o.Since) {
			return nil
		}
		r.pastSince = true // logs are ordered by time
	}
	n := int64(len(e.Text))
	if !e.Partial {
		n++
	}
	if left := r.o.Limit - r.emitted; r.o.Limit > 0 && n >= left {
		if n > left {
			e.Text, e.Partial = e.Text[:left], true
		}
		if err := r.emit(e); err != nil {
			return err
		}
		return errEnough
	}
	r.emitted += n
	return r.emit(e)
}

// finish emits the remaining text without a newline.
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
