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

// A reader is the state of one call of Read.
type reader struct {
	o      Options
	emit   func(Entry) error
	waiter waiter
	dir    *safepath.Dir // the container's log directory; nil until it exists

	// attempt is the first attempt to read. It is set together with cur.
	attempt uint32
	queue   []*scanner // open files to read after cur
	cur     *scanner   // the file that is being read; nil before the first file is open
	// previous is the file before cur. The runtime may still write to it.
	previous *scanner
	// mustRelist reports whether there may be new files.
	mustRelist bool
	// notFoundCount counts how often cur was not found in a listing.
	notFoundCount int

	maxWriteAfterExit time.Duration // value of the constant maxWriteAfterExit; shorter in tests

	emittedBytes   int64
	hasPassedSince bool // whether an entry that is not older than Since was found
}

func (r *reader) close() {
	r.waiter.close()
	for _, s := range append(r.queue, r.cur, r.previous) {
		if s != nil {
			s.f.Close()
		}
	}
	if r.dir != nil {
		r.dir.Close()
	}
}

// run emits the log and follows it if the options require that.
func (r *reader) run(ctx context.Context) error {
	var exitedAt time.Time // time at which HasExited returned true; zero before
	for {
		// isBeingWritten must be called before the entries are read. If it returns false,
		// no further entries will be written.
		cur, mayBeWritten := r.cur, !exitedAt.IsZero() && r.isBeingWritten()
		if err := r.readAvailable(ctx); err != nil {
			return err
		}
		isClosed := r.cur == cur && !mayBeWritten
		if !r.o.Follow || !exitedAt.IsZero() && (isClosed || time.Since(exitedAt) >= r.maxWriteAfterExit) {
			return r.finish()
		}
		if r.o.OnIdle != nil {
			if err := r.o.OnIdle(); err != nil {
				return err
			}
		}
		hasExited, err := r.await(ctx, exitedAt)
		if err != nil {
			return err
		}
		if hasExited && exitedAt.IsZero() {
			exitedAt = time.Now()
		}
	}
}

// await waits for a change of the log. After the exit of the container, it only pauses for a short
// time, because no event reports reliably that the log was closed. hasExited reports whether
// HasExited has returned true.
func (r *reader) await(ctx context.Context, exitedAt time.Time) (hasExited bool, err error) {
	if !exitedAt.IsZero() {
		r.mustRelist = true
		return true, pause(ctx, time.Since(exitedAt))
	}
	hasExited, r.mustRelist, err = r.waiter.wait(ctx, r.dir, r.o.HasExited)
	return hasExited, err
}

// readAvailable opens the first file, unless it is open already, and emits all available
// entries.
func (r *reader) readAvailable(ctx context.Context) error {
	if r.cur == nil {
		err := r.openFirst()
		if err != nil && (!r.o.Follow || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err != nil {
			r.o.TailLines = 0 // if the log is created later, all its lines are new and must be emitted
		} else {
			r.reportFile()
		}
	}
	return r.emitAvailable(ctx)
}

// isBeingWritten reports whether a process, usually the runtime, may still write to one of
// the open files.
func (r *reader) isBeingWritten() bool {
	for _, s := range []*scanner{r.previous, r.cur} {
		if s != nil && hasWriter(s.f) {
			return true
		}
	}
	return false
}

// emitAvailable emits all available entries of the current file and the files that follow.
func (r *reader) emitAvailable(ctx context.Context) error {
	for r.cur != nil {
		if err := r.emitOpenFiles(ctx); err != nil || !r.mustRelist {
			return err
		}
		next, err := r.openNext()
		if err != nil {
			return err
		}
		if next == nil {
			r.mustRelist = false
			return nil
		}
		// Because next exists, previous is complete, and cur is complete when the runtime has closed
		// it.
		err = r.emitUntilClosed(ctx)
		if err == nil {
			err = r.finishPrevious()
		}
		if err != nil {
			next.f.Close()
			return err
		}
		r.previous, r.cur = r.cur, next
		r.reportFile()
	}
	return nil
}

// reportFile calls OnFile with the current file.
func (r *reader) reportFile() {
	if r.o.OnFile != nil {
		r.o.OnFile(r.cur.f)
	}
}

// emitUntilClosed emits the entries of previous and cur until no process writes to cur any more, at
// most for maxWriteAfterRotation.
func (r *reader) emitUntilClosed(ctx context.Context) error {
	for begin := time.Now(); ; {
		isLast := !hasWriter(r.cur.f) || time.Since(begin) >= maxWriteAfterRotation // must be evaluated before the entries are read
		if err := r.emitOpenFiles(ctx); err != nil || isLast {
			return err
		}
		if err := pause(ctx, time.Since(begin)); err != nil {
			return err
		}
	}
}

// emitOpenFiles emits the available entries of previous and cur.
func (r *reader) emitOpenFiles(ctx context.Context) error {
	if r.previous != nil {
		if err := r.emitFile(ctx, r.previous); err != nil {
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
			wasTruncated, err := s.rewindIfTruncated()
			if err != nil {
				return fmt.Errorf("reading the log %s: %w", s.f.Name(), err)
			}
			if wasTruncated {
				continue
			}
			s.releaseBuffer()
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.emitSelected(e); err != nil {
			return err
		}
	}
}

// emitSelected emits an entry if the options select it. It returns errLimitReached after
// Options.LimitBytes bytes.
func (r *reader) emitSelected(e Entry) error {
	if r.o.Stream != "" && e.Stream != r.o.Stream && !e.Malformed {
		return nil
	}
	if !r.hasPassedSince && !r.o.Since.IsZero() {
		if e.Malformed || e.Time().Before(r.o.Since) {
			return nil
		}
		r.hasPassedSince = true // all later entries are newer and need not be compared
	}
	n := int64(len(e.Text))
	if !e.Partial {
		n++
	}
	if remaining := r.o.LimitBytes - r.emittedBytes; r.o.LimitBytes > 0 && n >= remaining {
		if n > remaining {
			e.Text, e.Partial = e.Text[:remaining], true
		}
		if err := r.emit(e); err != nil {
			return err
		}
		return errLimitReached
	}
	r.emittedBytes += n
	return r.emit(e)
}

// finish emits the last lines of the open files if they have no newline.
func (r *reader) finish() error {
	if err := r.finishPrevious(); err != nil {
		return err
	}
	r.previous, r.cur = r.cur, nil
	return r.finishPrevious()
}

// finishPrevious emits the last line of the previous file if it has no newline, and closes
// the file.
func (r *reader) finishPrevious() error {
	if r.previous == nil {
		return nil
	}
	s := r.previous
	r.previous = nil
	defer s.f.Close()
	if e, ok := s.lastEntry(); ok {
		return r.emitSelected(e)
	}
	return nil
}
