// Package rotate bounds the logs that containers leave on disk.
//
//	<pod logs>/<container>/0.log.20250102-150405.gz   put aside, compressed
//	                       0.log.20250102-160405      put aside last: readers may still be at it
//	                       0.log                      the runtime writes here
//
// A file that has grown to MaxSize is put aside under the time, and the runtime
// is told to begin a new one. The oldest go so that a container never has more
// than MaxFiles files, nor more than MaxFiles times MaxSize bytes, those of its
// earlier attempts included: a container that crashes in a loop is bounded too.
//
// How soon a file is looked at again follows from how fast it grew. A log that
// nobody writes to costs one stat now and then.
//
// Containers may be able to write where their logs are, so names are opened as
// package runtime/beneath does.
package rotate

import (
	"context"
	"log/slog"
	"time"
)

// Log is what one container name of a pod writes.
type Log struct {
	// Dir is the container's log directory below Options.Root.
	Dir string
	// Attempt is the newest one's number.
	Attempt uint32
	// ID is the container of that attempt while it runs, else "".
	ID string
}

// Options say what to keep and who knows. Root, MaxSize, Logs and Reopen are
// required.
type Options struct {
	// Root holds the log directories of all pods; nobody but root can change
	// its path.
	Root string
	// MaxSize is how many bytes a file may have before it is put aside.
	MaxSize int64
	// MaxFiles is how many a container may have, at least 2.
	MaxFiles int
	// Every is the longest time between two looks at one file. Zero: 10 s.
	Every time.Duration
	// Logs are those there are now; called often, by Run's goroutine.
	Logs func() []Log
	// Reopen has the runtime write a running container's log anew.
	Reopen func(ctx context.Context, id string) error
	// Log is told what could not be done. Nil: slog.Default().
	Log *slog.Logger
}

// Rotator keeps logs bounded. All its state belongs to the goroutine in Run.
type Rotator struct {
	o    Options
	seen map[string]*seen // by Dir
}

// seen is what is known of one log directory.
type seen struct {
	log   Log
	size  int64 // of the file that is written to
	at    time.Time
	due   time.Time
	again bool   // something was not complete yet
	fault string // the last one told
}

const (
	// tick is how soon a new container is looked at.
	tick = time.Second
	// quickest is the least time between two looks at a file that grows fast.
	quickest = 200 * time.Millisecond
)

// New returns a rotator that does nothing until Run.
func New(o Options) *Rotator {
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.MaxFiles = max(o.MaxFiles, 2)
	return &Rotator{o: o, seen: map[string]*seen{}}
}

// Run works until ctx is done. Call it once.
func (r *Rotator) Run(ctx context.Context) error {
	wake := time.NewTimer(tick)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake.C:
		}
		wake.Reset(max(time.Until(r.round(ctx)), 0))
	}
}

// round looks at what is due and returns when to look again.
func (r *Rotator) round(ctx context.Context) time.Time {
	now := time.Now()
	next := now.Add(tick)
	there := make(map[string]bool, len(r.seen))
	for _, l := range r.o.Logs() {
		there[l.Dir] = true
		s := r.seen[l.Dir]
		if s == nil || s.log != l {
			s = &seen{log: l, at: now}
			r.seen[l.Dir] = s
		}
		if !now.Before(s.due) {
			r.look(ctx, s)
		}
		if s.due.Before(next) {
			next = s.due
		}
	}
	for dir := range r.seen {
		if !there[dir] {
			delete(r.seen, dir)
		}
	}
	return next
}

// look tends a directory when there is cause to and settles when it is due.
func (r *Rotator) look(ctx context.Context, s *seen) {
	size, cause := r.cause(s.log)
	var err error
	if cause || s.again {
		s.again, err = r.tend(ctx, s.log)
		size = 0
	}
	now := time.Now()
	s.due = due(now, size, size-s.size, now.Sub(s.at), r.o)
	if s.again {
		s.due = now.Add(tick)
	}
	s.size, s.at = size, now
	fault := ""
	if err != nil && ctx.Err() == nil {
		fault = err.Error()
		s.due = now.Add(r.o.Every)
	}
	if fault != "" && fault != s.fault {
		r.o.Log.Warn("logs not rotated", "dir", s.log.Dir, "err", fault)
	}
	s.fault = fault
}

// due is when a file of this size, that grew so much in this time, may have
// reached the limit; half-way there, for it may grow faster.
func due(now time.Time, size, grown int64, took time.Duration, o Options) time.Time {
	wait := o.Every
	if left := o.MaxSize - size; grown > 0 && took > 0 {
		speed := float64(grown) / took.Seconds()
		if half := time.Duration(float64(left) / speed / 2 * float64(time.Second)); half < wait {
			wait = half
		}
	}
	return now.Add(max(wait, quickest))
}
