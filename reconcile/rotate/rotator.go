// Package rotate rotates container logs and limits their size on disk.
//
//	<pod logs>/<container>/0.log.20250102-150405.gz   rotated and compressed
//	                       0.log.20250102-160405      rotated last: it may still be read
//	                       0.log                      written by the runtime
//
// A file that has grown to MaxSize is renamed with the time, and the runtime opens a new one. The
// oldest files are removed, so that a container has at most MaxFiles files and MaxFiles times
// MaxSize bytes. Because the files of earlier attempts are included, the limit also holds for a
// container that crashes in a loop.
//
// The time until a file is checked again depends on how fast it grew. An idle log costs one stat
// per Options.CheckInterval.
//
//	Run ─ each directory that is due ─▶ rotate: removeOldest, rename, reopen (by the runtime), shrink, removeOldest
//	 ▲                                   │
//	 └───────────── result ──────────────┘
//
// Each directory is rotated in its own goroutine, because the runtime may not respond for one
// container. Calls to the runtime have a timeout. One goroutine at a time copies and compresses
// files.
//
// Containers may be able to write to the directories of their logs, so files are opened with
// package runtime/safepath.
package rotate

import (
	"context"
	"log/slog"
	"time"
)

// A Log identifies the logs of a container of a pod.
type Log struct {
	// Dir is the container's log directory below Options.Root.
	Dir string
	// Attempt is the number of the newest attempt.
	Attempt uint32
	// ID is the container ID of the newest attempt; "" if its container is not running.
	ID string
}

// Options are the options of a Rotator. Root, MaxSize, Logs and Reopen are required.
type Options struct {
	// Root is the directory with the log directories of all pods. The caller must ensure that only
	// root can change the directories of this path.
	Root string
	// MaxSize is the size in bytes at which a file is rotated.
	MaxSize int64
	// MaxFiles is the maximum number of files of a container. Values below 2 mean 2.
	MaxFiles int
	// Workers is the maximum number of container logs that are rotated at the same time. Values below 1
	// mean 1.
	Workers int
	// CheckInterval is the maximum interval between checks of a file. 0 means 10 s.
	CheckInterval time.Duration
	// Logs returns the logs of all containers. The goroutine of Run calls Logs about once a
	// second, so Logs must return quickly.
	Logs func() []Log
	// Reopen makes the runtime reopen the log file of the running container id. Reopen must
	// return when ctx is done.
	Reopen func(ctx context.Context, id string) error
	// Log is the logger for failures. nil means slog.Default().
	Log *slog.Logger
}

// A Rotator rotates logs. All of its state belongs to the goroutine of Run.
type Rotator struct {
	o          Options
	states     map[string]*logState // by Log.Dir
	inProgress map[string]bool      // by Log.Dir; removed when the result is received
	results    chan rotateResult
	rounds     uint64        // number of calls of checkAll
	filesSlot  chan struct{} // semaphore with capacity 1 for shrink and removeOldest
}

// A rotateResult is the result of rotating a directory.
type rotateResult struct {
	log          Log
	isIncomplete bool
	err          error
}

// A logState is the state of a log directory.
type logState struct {
	log          Log
	size         int64     // size of the newest file in bytes at the last check
	checkedAt    time.Time // time of the last check
	nextCheck    time.Time
	isIncomplete bool   // whether the last rotation was incomplete; see Rotator.rotate
	lastError    string // the last logged error; "" after a success
	lastRound    uint64 // the last round in which Options.Logs returned the log
}

const (
	// tick is the maximum interval between calls of checkAll, and so the maximum time until a
	// new container is checked.
	tick = time.Second
	// minInterval is the minimum interval between checks of a file that grows fast.
	minInterval = 200 * time.Millisecond
	// reopenTimeout is the timeout for the runtime to reopen a log file.
	reopenTimeout = 30 * time.Second
)

// New returns a Rotator. The Rotator does nothing until Run is called.
func New(o Options) *Rotator {
	if o.CheckInterval <= 0 {
		o.CheckInterval = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.MaxFiles, o.Workers = max(o.MaxFiles, 2), max(o.Workers, 1)
	return &Rotator{o: o, states: map[string]*logState{}, inProgress: map[string]bool{}, results: make(chan rotateResult), filesSlot: make(chan struct{}, 1)}
}

// Run rotates logs until ctx is done. After that, it waits for rotations in progress and returns
// nil. Run must be called only once.
func (r *Rotator) Run(ctx context.Context) error {
	wake := time.NewTimer(tick)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			r.waitAll(ctx)
			return nil
		case result := <-r.results:
			r.handleResult(ctx, result)
		case <-wake.C:
			wake.Reset(max(time.Until(r.checkAll(ctx)), 0))
		}
	}
}

// waitAll waits until no rotation is in progress.
func (r *Rotator) waitAll(ctx context.Context) {
	for len(r.inProgress) > 0 {
		r.handleResult(ctx, <-r.results)
	}
}

// checkAll checks each log whose next check is due. It returns the time at which it must be called
// again.
func (r *Rotator) checkAll(ctx context.Context) time.Time {
	now := time.Now()
	next := now.Add(tick)
	r.rounds++
	for _, l := range r.o.Logs() {
		s := r.states[l.Dir]
		if s == nil || s.log != l {
			s = &logState{log: l, checkedAt: now}
			r.states[l.Dir] = s
		}
		s.lastRound = r.rounds
		if r.inProgress[l.Dir] {
			continue
		}
		if !now.Before(s.nextCheck) {
			r.check(ctx, s)
		}
		if s.growsFast() && s.nextCheck.Before(next) {
			next = s.nextCheck
		}
	}
	for dir, s := range r.states {
		if s.lastRound != r.rounds {
			delete(r.states, dir)
		}
	}
	return next
}

// growsFast reports whether the log must be checked before the next tick. All other logs are
// checked at the tick, because each call of checkAll costs time for every log.
func (s *logState) growsFast() bool { return s.nextCheck.Sub(s.checkedAt) < tick }

// check starts the rotation of a directory if necessary, and sets the time of the next check of
// the directory.
func (r *Rotator) check(ctx context.Context, s *logState) {
	size, needsWork := r.needsWork(s.log)
	now := time.Now()
	s.nextCheck = nextCheck(now, size, size-s.size, now.Sub(s.checkedAt), r.o)
	s.size, s.checkedAt = size, now
	if !needsWork && !s.isIncomplete {
		s.lastError = ""
		return
	}
	if len(r.inProgress) >= r.o.Workers {
		s.nextCheck = now.Add(tick)
		return
	}
	r.inProgress[s.log.Dir] = true
	l := s.log
	go func() { // Run or waitAll receives the result
		isIncomplete, err := r.rotate(ctx, l)
		r.results <- rotateResult{l, isIncomplete, err}
	}()
}

// handleResult records the result of a rotation.
func (r *Rotator) handleResult(ctx context.Context, result rotateResult) {
	delete(r.inProgress, result.log.Dir)
	s := r.states[result.log.Dir]
	if s == nil || s.log != result.log {
		return
	}
	now := time.Now()
	s.isIncomplete, s.size, s.checkedAt = result.isIncomplete, 0, now
	s.nextCheck = nextCheck(now, 0, 0, 0, r.o)
	if s.isIncomplete {
		s.nextCheck = now.Add(tick)
	}
	problem := ""
	if result.err != nil && ctx.Err() == nil {
		problem = result.err.Error()
		s.nextCheck = now.Add(r.o.CheckInterval)
	}
	if problem != "" && problem != s.lastError {
		r.o.Log.Warn("rotating logs failed; retrying", "dir", s.log.Dir, "err", problem)
	}
	s.lastError = problem
}

// nextCheck returns the time of the next check of a file. size is its size in bytes, and growth is
// the number of bytes by which it has grown during elapsed. Because the file may grow faster, it is
// checked after half of the time in which it would reach the limit. The interval is at least
// minInterval and at most Options.CheckInterval.
func nextCheck(now time.Time, size, growth int64, elapsed time.Duration, o Options) time.Time {
	wait := o.CheckInterval
	if remaining := o.MaxSize - size; growth > 0 && elapsed > 0 {
		speed := float64(growth) / elapsed.Seconds()
		if half := time.Duration(float64(remaining) / speed / 2 * float64(time.Second)); half < wait {
			wait = half
		}
	}
	return now.Add(max(wait, minInterval))
}
